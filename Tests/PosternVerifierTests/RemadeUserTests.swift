import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternVerifier

/// A user who is deleted on one node of a cluster, and made again under the same uid on another node, whose clock is
/// behind.
@Suite struct RemadeUserTests {
    /// How the user is made again.
    enum Making: CaseIterable, Sendable { case byAnAdmin, bySigningIn }

    @Test(arguments: Making.allCases)
    func `The new user's tokens are accepted, and the former user's refused`(making: Making) async throws {
        let clocks = (ManualClock(), ManualClock(startingAt: ManualClock().clock.now() - .seconds(2)))
        try await withTwoNodes(clock: clocks.0, secondClock: clocks.1) { nodes in
            let (first, second) = (try nodes.first.connect(), try nodes.second.connect())
            let former = try Self.signIn(first)
            let _: UsersDeleteResponse = try first.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: "ada"))
            if making == .byAnAdmin {
                let _: UsersCreateResponse = try second.call("postern.v1.Users/Create", UsersCreateRequest(uid: "ada"))
            }
            let new = try Self.signIn(second)
            let checked: TokensVerifyIdTokenResponse = try second.call(
                "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: new))
            #expect(checked.uid == "ada")
            let channel = try Channel(
                address: "127.0.0.1:\(nodes.first.port)", credentials: .apiKey(nodes.first.adminKey))
            let verifier = try await TokenVerifier(channel: channel)
            #expect(verifier.reason(former) == "TOKEN_EXPIRED")
            #expect(verifier.reason(new) == "")
            await channel.shutdown()
        }
    }

    /// Signs the user in with a custom token, which makes the user if there is none.
    private static func signIn(_ client: RawClient) throws -> Text {
        let minted: UsersCreateCustomTokenResponse = try client.call(
            "postern.v1.Users/CreateCustomToken", UsersCreateCustomTokenRequest(uid: "ada"))
        let signedIn: AccountsSignInWithCustomTokenResponse = try client.call(
            "postern.v1.Accounts/SignInWithCustomToken",
            AccountsSignInWithCustomTokenRequest(token: minted.customToken))
        return try #require(signedIn.tokens).idToken
    }
}
