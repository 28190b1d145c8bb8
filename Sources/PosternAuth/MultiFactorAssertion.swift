import Base

/// A proof of a second factor, made by `PhoneMultiFactorGenerator`, `TOTPMultiFactorGenerator` or
/// `RecoveryCodeMultiFactorGenerator`.
///
/// An assertion finishes a sign-in (`MultiFactorResolver.resolveSignIn(with:)`) or adds the factor to the account
/// (`MultiFactor.enroll(with:displayName:)`). Its code is wiped with the last copy and never printed.
///
/// ```swift
/// let assertion = TOTPMultiFactorGenerator.assertionForSignIn(withEnrollmentID: factorID, oneTimePassword: code)
/// try await resolver.resolveSignIn(with: assertion)
/// ```
public struct MultiFactorAssertion: Sendable {
    /// The kind of factor: "phone", "totp", or "recovery" for a recovery code.
    public let factorID: String
    let kind: Kind

    enum Kind: Sendable {
        case phone(AuthCredential)
        case newTOTP(sessionInfo: Secret, code: Secret)
        case totp(factorUID: String, code: Secret)
        case recoveryCode(Secret)
    }
}

extension MultiFactorAssertion: CustomStringConvertible {
    /// The kind of factor, without the code.
    public var description: String { "MultiFactorAssertion(\(factorID))" }
}

/// Makes assertions of codes that were sent to a phone.
///
/// ```swift
/// let provider = PhoneAuthProvider.provider(auth: auth)
/// let credential = provider.credential(withVerificationID: verificationID, verificationCode: code)
/// let assertion = PhoneMultiFactorGenerator.assertion(with: credential)
/// try await resolver.resolveSignIn(with: assertion)
/// ```
public enum PhoneMultiFactorGenerator {
    /// Makes an assertion of the code that the user read, for a sign-in or for an enrolment.
    public static func assertion(with phoneAuthCredential: PhoneAuthCredential) -> MultiFactorAssertion {
        MultiFactorAssertion(factorID: PhoneMultiFactorID, kind: .phone(phoneAuthCredential))
    }
}

/// Makes secrets for authenticator apps, and assertions of their codes.
///
/// ```swift
/// let secret = try await TOTPMultiFactorGenerator.generateSecret(with: user.multiFactor.session())
/// print("Scan this:", secret.generateQRCodeURL(withAccountName: email, issuer: "Acme"))
/// let assertion = TOTPMultiFactorGenerator.assertionForEnrollment(with: secret, oneTimePassword: code)
/// try await user.multiFactor.enroll(with: assertion, displayName: "My phone")
/// ```
public enum TOTPMultiFactorGenerator {
    /// Asks the server for a secret, which belongs to the session's user. It is good for an enrolment within ten
    /// minutes.
    ///
    /// Throws requiresRecentLogin, unverifiedEmail, maximumSecondFactorCountExceeded, and operationNotAllowed where the
    /// tenant has this kind of factor off.
    public static func generateSecret(with session: MultiFactorSession) async throws -> TOTPSecret {
        try await session.startTOTPEnrollment()
    }

    /// Makes an assertion that adds the factor: a code proves that the app has the secret.
    public static func assertionForEnrollment(
        with secret: TOTPSecret, oneTimePassword: String
    ) -> MultiFactorAssertion {
        MultiFactorAssertion(
            factorID: TOTPMultiFactorID, kind: .newTOTP(sessionInfo: secret.sessionInfo, code: Secret(oneTimePassword)))
    }

    /// Makes an assertion that finishes a sign-in. `enrollmentID` is the `uid` of the hint that the user chose.
    public static func assertionForSignIn(
        withEnrollmentID enrollmentID: String, oneTimePassword: String
    ) -> MultiFactorAssertion {
        MultiFactorAssertion(
            factorID: TOTPMultiFactorID, kind: .totp(factorUID: enrollmentID, code: Secret(oneTimePassword)))
    }
}

/// Makes assertions of recovery codes, for users who do not have their phone. FirebaseAuth has no recovery codes.
///
/// ```swift
/// let assertion = RecoveryCodeMultiFactorGenerator.assertionForSignIn(withRecoveryCode: code)
/// try await resolver.resolveSignIn(with: assertion)
/// ```
public enum RecoveryCodeMultiFactorGenerator {
    /// Makes an assertion that finishes a sign-in. A recovery code works once; spaces, hyphens and the case of its
    /// letters do not matter.
    public static func assertionForSignIn(withRecoveryCode recoveryCode: String) -> MultiFactorAssertion {
        MultiFactorAssertion(factorID: "recovery", kind: .recoveryCode(Secret(recoveryCode)))
    }
}
