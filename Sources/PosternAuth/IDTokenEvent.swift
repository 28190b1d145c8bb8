/// An event of the current user.
///
/// ```swift
/// for await event in auth.idTokenEvents {
///     if case .profileChanged = event.change { print(event.user?.displayName ?? "") }
/// }
/// ```
public struct IDTokenEvent: Sendable {
    /// The current user after the event. Nil: nobody is signed in.
    public let user: User?
    /// The kind of event.
    public let change: Change

    /// The kinds of event.
    public enum Change: Sendable {
        /// The state when listening began: a user who was signed in already, perhaps since an earlier run, or nobody.
        case initialized
        /// A user signed in, or became the current user.
        case signedIn
        /// Nobody is signed in any more. With an error: the server ended the session, and the error tells the cause.
        /// Nil: the application called `signOut` or `delete`.
        case signedOut(AuthError?)
        /// The user has a new ID token.
        case tokenRefreshed(TokenRefreshCause)
        /// The user's email, profile, providers or claims changed, here or on another device. Properties are new
        /// already; claims come with the next ID token. The other sequences and the listeners do not report this.
        case profileChanged
    }
}
