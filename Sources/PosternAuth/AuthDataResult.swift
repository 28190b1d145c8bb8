import Base
import Messages

/// What signing in, linking or proving again gives.
public struct AuthDataResult: Sendable {
    public let user: User
    public let additionalUserInfo: AdditionalUserInfo
}

/// What a sign-in tells beside the user.
public struct AdditionalUserInfo: Sendable {
    /// The provider of the credential; nil for custom tokens and anonymous users.
    public let providerID: String?
    /// This sign-in created the account.
    public let isNewUser: Bool
    /// What an identity provider told this time; the user's own profile may say otherwise.
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
