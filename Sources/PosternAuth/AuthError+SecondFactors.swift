import Base
import JSON
import Messages
import PosternClient

extension AuthError {
    /// Finishes the sign-in with a second factor. Nil unless the user has one and the server asks for it:
    /// secondFactorRequired.
    public var multiFactorResolver: MultiFactorResolver? { pendingSignIn as? MultiFactorResolver }

    /// Adds the second factor that the tenant requires and the user lacks, and signs in. Nil unless the reason is
    /// SECOND_FACTOR_ENROLLMENT_REQUIRED.
    public var multiFactorEnrollment: MultiFactorEnrollment? { pendingSignIn as? MultiFactorEnrollment }

    /// The error with the object that finishes the sign-in, if the server wants a second factor.
    func withPendingSignIn(_ refused: RefusedSignIn) -> AuthError {
        var error = self
        if self.is(.secondFactorRequired), let text = failure?.metadataValue("pending_credential") {
            let credential = Secret(text)
            error.pendingSignIn = MultiFactorResolver(
                session: MultiFactorSession(.signIn(credential), backend: refused.backend),
                hints: hints.compactMap(\.info), credential: credential, refused: refused)
        }
        if self.is(.secondFactorEnrollmentRequired), let text = failure?.metadataValue("enrollment_credential"),
            let credential = Text(validating: [UInt8](text.utf8))
        {
            error.pendingSignIn = MultiFactorEnrollment(
                session: MultiFactorSession(.requiredEnrollment(credential), backend: refused.backend),
                credential: credential, refused: refused)
        }
        return error
    }

    /// The second factors that the refusal names.
    private var hints: [SecondFactor] {
        guard let text = failure?.metadataValue("second_factors"),
            let json = try? JSONValue(parsing: [UInt8](text.utf8))
        else { return [] }
        return json.array?.compactMap { SecondFactor(hint: $0) } ?? []
    }
}
