import PosternClient

/// A sign-in, or a proof by a signed-in user, that the server refused until a second factor is shown, and what has to
/// be done when it is.
struct RefusedSignIn: Sendable {
    typealias Call = @Sendable (CallOptions) async throws(AuthError) -> Answer

    /// As it was when the sign-in began: the tenant of an `Auth` may change.
    let backend: Backend
    let auth: Auth?
    let providerID: String?
    /// Does the call that brings the tokens. Makes their user the current one, or gives them to the user there is.
    let finish: @Sendable (@escaping Call) async throws -> (user: User, answer: Answer)
}
