/// What happened to the signed-in user.
public struct IDTokenEvent: Sendable {
    /// The current user since then; nil: nobody is signed in.
    public let user: User?
    public let change: Change

    public enum Change: Sendable {
        /// The state as listening began: a user who is signed in already, perhaps since an earlier run, or nobody.
        case initialized
        case signedIn
        /// `AuthError`: the server ended it, and why; nil: `signOut` or `delete` was called.
        case signedOut(AuthError?)
        case tokenRefreshed(TokenRefreshCause)
        /// The user has another email, profile, provider or set of claims, by a change here or elsewhere. Properties
        /// are new already; claims come with the next ID token. The other sequences and the listeners are not told.
        case profileChanged
    }
}

/// Why a user has new tokens.
public enum TokenRefreshCause: Sendable, Equatable {
    /// The ID token ran out, or was about to.
    case expired
    /// `idToken(forcingRefresh: true)`.
    case requested
    case passwordChanged
    case reauthenticated
    case emailChanged
    /// A way to sign in was linked or unlinked.
    case providersChanged
}
