import Base
import Messages

/// The result of signing in, linking or reauthenticating.
///
/// ```swift
/// let result = try await auth.signIn(withEmail: email, password: password)
/// print(result.user.uid, result.additionalUserInfo.isNewUser ? "is new" : "was here before")
/// ```
public struct AuthDataResult: Sendable {
    /// The user, which is the current user after signing in.
    public let user: User
    /// Facts about this sign-in that the user does not carry.
    public let additionalUserInfo: AdditionalUserInfo
}

/// Facts about one sign-in.
///
/// ```swift
/// let info = try await auth.signIn(with: credential).additionalUserInfo
/// if info.isNewUser { print("Welcome,", info.profile?.displayName ?? "stranger") }
/// ```
public struct AdditionalUserInfo: Sendable {
    /// The provider of the credential. Nil for custom tokens and anonymous users.
    public let providerID: String?
    /// True if this sign-in created the account.
    public let isNewUser: Bool
    /// The profile that the identity provider reported this time. The account's own profile may differ. Nil for
    /// credentials of no identity provider.
    public let profile: UserInfo?
}

extension AuthDataResult {
    init(_ user: User, _ answer: Answer, providerID: String? = nil) {
        self.user = user
        self.additionalUserInfo = AdditionalUserInfo(
            providerID: answer.provider?.providerID.string ?? providerID, isNewUser: answer.isNewUser,
            profile: answer.provider.map { UserInfo($0) })
    }
}
