public import Base
import JSON
import Messages

/// A second factor of a user: a `PhoneMultiFactorInfo` or a `TOTPMultiFactorInfo`.
///
/// ```swift
/// for factor in user.multiFactor.enrolledFactors {
///     print(factor.displayName ?? factor.factorID, "since", factor.enrollmentDate.seconds)
/// }
/// ```
public protocol MultiFactorInfo: Sendable {
    /// The id of the factor, unique among the user's factors.
    var uid: String { get }
    /// The name that the user gave to the factor. Nil: none.
    var displayName: String? { get }
    /// When the factor was added, by the server's clock.
    var enrollmentDate: Timestamp { get }
    /// The kind of factor: `PhoneMultiFactorID` or `TOTPMultiFactorID`.
    var factorID: String { get }
}

// Capital letters, because these are the names that applications have in their code.
// swift-format-ignore: AlwaysUseLowerCamelCase
/// FirebaseAuth's constant for codes that are sent to a phone: "phone".
public let PhoneMultiFactorID = "phone"
// swift-format-ignore: AlwaysUseLowerCamelCase
/// FirebaseAuth's constant for codes of an authenticator app: "totp".
public let TOTPMultiFactorID = "totp"

/// A phone number that is sent a code at each sign-in.
///
/// ```swift
/// if let phone = resolver.hints.first as? PhoneMultiFactorInfo {
///     print("A code goes to", phone.phoneNumber)
/// }
/// ```
public struct PhoneMultiFactorInfo: MultiFactorInfo, Equatable {
    /// The id of the factor, unique among the user's factors.
    public let uid: String
    /// The name that the user gave to the factor. Nil: none.
    public let displayName: String?
    /// When the factor was added, by the server's clock.
    public let enrollmentDate: Timestamp
    /// The phone number in E.164 form. The hints of a sign-in show its last four digits only.
    public let phoneNumber: String
    /// `PhoneMultiFactorID`.
    public var factorID: String { PhoneMultiFactorID }
}

/// An authenticator app, which makes a new code every 30 seconds (RFC 6238).
///
/// ```swift
/// if let app = resolver.hints.first as? TOTPMultiFactorInfo {
///     let assertion = TOTPMultiFactorGenerator.assertionForSignIn(
///         withEnrollmentID: app.uid, oneTimePassword: code)
///     try await resolver.resolveSignIn(with: assertion)
/// }
/// ```
public struct TOTPMultiFactorInfo: MultiFactorInfo, Equatable {
    /// The id of the factor, unique among the user's factors.
    public let uid: String
    /// The name that the user gave to the factor. Nil: none.
    public let displayName: String?
    /// When the factor was added, by the server's clock.
    public let enrollmentDate: Timestamp
    /// `TOTPMultiFactorID`.
    public var factorID: String { TOTPMultiFactorID }
}

extension SecondFactor {
    /// The factor as an application sees it. Nil for a kind that this library does not know.
    var info: (any MultiFactorInfo)? {
        let date = Timestamp(microseconds: enrolledAtMicros)
        switch kind {
        case .phone:
            return PhoneMultiFactorInfo(
                uid: factorID.string, displayName: displayName.stringOrNil, enrollmentDate: date,
                phoneNumber: phoneNumber.string)
        case .totp:
            return TOTPMultiFactorInfo(
                uid: factorID.string, displayName: displayName.stringOrNil, enrollmentDate: date)
        default: return nil
        }
    }

    /// Reads a hint of a refused sign-in (metadata `second_factors`). Nil for a value that is not a hint.
    init?(hint: JSONValue) {
        guard let id = hint["factorId"]?.text, let kindName = hint["kind"]?.text else { return nil }
        let kind: SecondFactorKind =
            switch kindName {
            case "phone": .phone
            case "totp": .totp
            default: .unspecified
            }
        self.init(
            factorID: id, kind: kind, displayName: hint["displayName"]?.text ?? .empty,
            phoneNumber: hint["phoneNumber"]?.text ?? .empty,
            enrolledAtMicros: hint["enrolledAtMicros"]?.integer ?? 0)
    }
}
