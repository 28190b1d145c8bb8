/// The cause of a new ID token.
///
/// ```swift
/// for await event in auth.idTokenEvents {
///     if case .tokenRefreshed(.passwordChanged) = event.change { print("The password is new.") }
/// }
/// ```
public enum TokenRefreshCause: Sendable, Equatable {
    /// The old ID token expired, or was about to.
    case expired
    /// The application called `idToken(forcingRefresh: true)`.
    case requested
    /// The application changed the user's password.
    case passwordChanged
    /// The user reauthenticated.
    case reauthenticated
    /// The application changed the user's email.
    case emailChanged
    /// A way to sign in was linked or unlinked.
    case providersChanged
    /// The application added or removed a second factor.
    case secondFactorsChanged
}
