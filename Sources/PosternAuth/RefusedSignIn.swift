import PosternClient

/// A sign-in, or a proof by a signed-in user, that the server refused until a second factor is shown, with the call
/// that finishes it.
struct RefusedSignIn: Sendable {
    typealias Call = @Sendable (CallOptions) async throws(AuthError) -> Answer

    /// The backend as it was when the sign-in began: the tenant of an `Auth` may change.
    let backend: Backend
    let auth: Auth?
    let providerID: String?
    /// Makes the call that returns tokens. Makes their user the current user, or gives the tokens to the present user.
    let finish: @Sendable (@escaping Call) async throws -> (user: User, answer: Answer)
}
