import Base
import Messages

/// The answer to a sign-in or a change: the user, and the tokens if there are new ones.
struct Answer: Sendable {
    let account: Messages.User
    let tokens: TokenPair?
    var isNewUser = false
    var provider: ProviderInfo?
    /// The recovery codes that the server made, because a second factor was added and the user had no codes.
    var recoveryCodes: [Secret] = []

    init(_ account: Messages.User?, _ tokens: TokenPair?, isNewUser: Bool = false, provider: ProviderInfo? = nil)
        throws(AuthError)
    {
        guard let account else { throw .malformedAnswer("user") }
        self.account = account
        self.tokens = tokens
        self.isNewUser = isNewUser
        self.provider = provider
    }
}
