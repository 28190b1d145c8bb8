public import Base
import JSON
public import Messages

/// The rules for second factors. Pure.
public enum SecondFactorRules {
    /// The step that a sign-in needs after its first factor.
    public enum Need: Sendable, Equatable {
        case nothing
        /// One of the user's factors.
        case factor
        /// The enrolment of a first factor.
        case enrollment
    }

    public static let factorsMax = 5
    static let displayNameByteCountMax = 64

    /// The step that a sign-in of `user` needs. The kinds that a tenant allows limit enrolment only: a factor that a
    /// user has is always asked for.
    public static func need(of user: User, settings: TenantSettings) -> Need {
        switch settings.secondFactorState {
        case .unspecified, .disabled: .nothing
        case .enabled: user.secondFactors.isEmpty ? .nothing : .factor
        case .mandatory: user.secondFactors.isEmpty ? .enrollment : .factor
        }
    }

    /// SECOND_FACTORS_NOT_ALLOWED.
    public static func checkAllowed(_ kind: SecondFactorKind, settings: TenantSettings) throws(Failure) {
        let allowed = settings.allowedSecondFactors
        guard allowed.isEmpty || allowed.contains(kind) else {
            throw .secondFactorsNotAllowed(by: "allowed_second_factors")
        }
    }

    /// SECOND_FACTORS_NOT_ALLOWED where the tenant has no second factors.
    public static func checkOpen(_ settings: TenantSettings) throws(Failure) {
        switch settings.secondFactorState {
        case .unspecified, .disabled: throw .secondFactorsNotAllowed(by: "second_factor_state")
        case .enabled, .mandatory: break
        }
    }

    /// INVALID_DISPLAY_NAME.
    public static func checkDisplayName(_ name: Text, limits: Limits) throws(Failure) {
        try Values.checkDisplayName(name, limits: limits)
        guard name.byteCount <= displayNameByteCountMax else {
            throw .invalid(
                .invalidDisplayName, field: "display_name", "must have at most \(displayNameByteCountMax) bytes")
        }
    }

    /// Checks that the user may get one more factor. UNVERIFIED_EMAIL, SECOND_FACTOR_LIMIT_EXCEEDED.
    public static func checkRoom(_ user: User) throws(Failure) {
        guard !user.email.isEmpty, user.emailVerified else {
            throw Failure(.unverifiedEmail, "A second factor needs a verified email; verify it first.")
        }
        guard user.secondFactors.count < factorsMax else {
            throw Failure(
                .secondFactorLimitExceeded, "A user has at most \(factorsMax) second factors; remove one first.")
        }
    }

    /// SECOND_FACTOR_EXISTS.
    public static func checkNew(_ number: PhoneNumber, for user: User) throws(Failure) {
        guard !user.secondFactors.contains(where: { $0.phoneNumber == number.text }) else {
            throw Failure(.secondFactorExists, "The user has this phone number as a second factor already.")
        }
    }

    /// The factors by which a sign-in can be finished that began with `provider`. The phone that proved the first
    /// factor does not count as a second one. Its user has a verified email, and can begin with that.
    public static func offered(to user: User, after provider: Text) -> [SecondFactor] {
        user.secondFactors.prefix(factorsMax).filter { factor in
            provider != ProviderInfo.phone || factor.kind != .phone || factor.phoneNumber != user.phoneNumber
        }
    }

    /// The factors as they are described to a user who is asked for one, as JSON: phone numbers with their last four
    /// digits only.
    public static func hints(_ factors: [SecondFactor]) -> Text {
        var json = JSONWriter()
        json.beginArray()
        for factor in factors {
            json.beginObject()
            json.member("factorId", text: factor.factorID)
            json.member("kind", text: factor.kind.name)
            json.member("displayName", text: factor.displayName)
            json.member("phoneNumber", text: redacted(factor.phoneNumber))
            json.member("enrolledAtMicros", integer: factor.enrolledAtMicros)
            json.endObject()
        }
        json.endArray()
        return Text(unchecked: json.bytes)
    }

    /// +14155550123 as +*******0123.
    static func redacted(_ number: Text) -> Text {
        let last = number.byteCount - 4
        return Text(
            unchecked: number.bytes.enumerated().map { index, byte in
                index >= last || byte == UInt8(ascii: "+") ? byte : UInt8(ascii: "*")
            })
    }
}

extension SecondFactorKind {
    /// The kind's name in ID tokens (`sign_in_second_factor`), hints and events.
    public var name: Text {
        switch self {
        case .phone: "phone"
        case .totp: "totp"
        case .unspecified: ""
        }
    }
}

extension User {
    /// MISSING_MFA_ENROLLMENT_ID, MFA_ENROLLMENT_NOT_FOUND.
    public func secondFactor(_ id: Text) throws(Failure) -> SecondFactor { try secondFactors.factor(id) }
}

extension Account {
    /// Adds a second factor. `address`: the hash of the address that it was enrolled from; nil if that is not known.
    ///
    /// With the first factor, all other known addresses are forgotten. Each known address has a budget of its own for
    /// wrong codes, and somebody who had only the password may have signed in from these.
    public mutating func add(_ factor: SecondFactor, from address: UInt64?) {
        if user.secondFactors.isEmpty {
            knownAddresses = KnownAddresses()
            if let address { knownAddresses.remember(address) }
        }
        user.secondFactors.append(factor)
    }
}

extension [SecondFactor] {
    /// MISSING_MFA_ENROLLMENT_ID, MFA_ENROLLMENT_NOT_FOUND.
    public func factor(_ id: Text) throws(Failure) -> SecondFactor {
        guard !id.isEmpty else { throw .missingFactorID }
        guard let factor = first(where: { $0.factorID == id }) else { throw .factorNotFound }
        return factor
    }
}

extension Failure {
    static func secondFactorsNotAllowed(by setting: String) -> Failure {
        refused(
            .secondFactorsNotAllowed, by: setting,
            "This tenant does not allow this; its admins set which second factors there are.")
    }
    public static let missingFactorID = Failure.invalid(.missingMFAEnrollmentID, field: "factor_id", "is required")
    public static let factorNotFound = Failure(
        .mfaEnrollmentNotFound, "The user has no such second factor; read the account to see those it has.")
}
