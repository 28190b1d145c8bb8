import Base
import Crypto
import Identity
import JSON
import Messages
import Service
import Signing
import Synchronization
import TestSupport
import Testing

@testable import Store

/// Tokens of keys that another node made a moment ago, and forged tokens, at a node that hears no news.
@Suite struct KeysOfAnotherNodeTests {
    private func rotate(_ client: IdentityClient, _ use: TokenUse) throws {
        let _: ProjectRotateSigningKeyResponse = try client.client.call(
            "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest(tokenUse: use))
    }

    private func revoke(_ client: IdentityClient, _ keyID: Text) throws {
        let _: ProjectRevokeSigningKeyResponse = try client.client.call(
            "postern.v1.Project/RevokeSigningKey", ProjectRevokeSigningKeyRequest(keyID: keyID))
    }

    private func verify(_ client: IdentityClient, _ idToken: Text) throws -> Text {
        let answer: TokensVerifyIdTokenResponse = try client.client.call(
            "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: idToken))
        return answer.uid
    }

    // MARK: Genuine tokens

    @Test func aTokenOfANewKeyIsGoodOnAllNodesAtOnce() async throws {
        try await withTwoServers { first, second in
            let (one, two) = (try IdentityClient(first), try IdentityClient(second))
            for round in 0..<6 {
                try rotate(one, .idToken)
                let user = try one.signUp(Text("user\(round)@example.com"))
                let idToken = try #require(user.tokens).idToken
                switch round % 3 {
                case 0: #expect(try verify(two, idToken) == user.user?.uid)
                case 1: #expect(try two.lookup(idToken).uid == user.user?.uid)
                default:
                    let listed: SessionsListResponse = try two.client.call(
                        "postern.v1.Sessions/List", SessionsListRequest(idToken: idToken))
                    #expect(listed.sessions.count == 1)
                }
            }
        }
    }

    @Test func aSessionCookieOfANewKeyIsGoodOnAllNodesAtOnce() async throws {
        try await withTwoServers { first, second in
            let (one, two) = (try IdentityClient(first), try IdentityClient(second))
            let user = try one.signUp("ada@example.com")
            for _ in 0..<3 {
                try rotate(one, .sessionCookie)
                let made: TokensCreateSessionCookieResponse = try one.client.call(
                    "postern.v1.Tokens/CreateSessionCookie",
                    TokensCreateSessionCookieRequest(idToken: try #require(user.tokens).idToken))
                let verified: TokensVerifySessionCookieResponse = try two.client.call(
                    "postern.v1.Tokens/VerifySessionCookie",
                    TokensVerifySessionCookieRequest(sessionCookie: made.sessionCookie))
                #expect(verified.uid == user.user?.uid)
            }
        }
    }

    @Test func aServiceAccountsNewKeySignsForAllNodesAtOnce() async throws {
        try await withTwoServers { first, second in
            let backEnd = try BackEnd(first, id: "root", role: .projectAdmin)
            let caller = try second.connect(authenticated: false)
            caller.apiKey = Secret(backEnd.callerToken().bytes)
            let info: ProjectServerInfoResponse = try caller.call(
                "postern.v1.Project/ServerInfo", ProjectServerInfoRequest())
            #expect(info.projectID == "test")
            let other = try BackEnd(first, id: "other")
            let signedIn: AccountsSignInWithCustomTokenResponse = try second.connect().call(
                "postern.v1.Accounts/SignInWithCustomToken",
                AccountsSignInWithCustomTokenRequest(token: Secret(other.token().bytes)))
            #expect(signedIn.tokens != nil)
        }
    }

    // MARK: Forged tokens

    /// A token with the claims of a genuine one, signed with a key that no node has.
    private func forged(like idToken: Text, _ change: (JSONValue) -> JSONValue = { $0 }) -> Text {
        let key = newKeyPair()
        let header: JSONValue = ["alg": "ES256", "kid": .string(key.publicKey.keyID), "typ": "JWT"]
        let period = [UInt8(ascii: ".")]
        let signed =
            Base64.url.encode(header.serialized()) + period
            + Base64.url.encode(change(claims(of: idToken)).serialized())
        return Text(unchecked: signed + period + Base64.url.encode(key.sign(signed)))
    }

    /// Tokens that no newer state makes good.
    private func hopeless(like idToken: Text) -> [Text] {
        var badlySigned = idToken.bytes
        badlySigned[badlySigned.count - 20] ^= 1
        return [
            "a.b.c", "no token", Text(unchecked: badlySigned),
            forged(like: idToken) { $0.with("aud", "another") },
            forged(like: idToken) { $0.with("exp", 1) },
        ]
    }

    @Test func aForgedTokenDoesNotMakeANodeAskItsEngine() async throws {
        try await withTwoNodes(configure: { $0.limits.journal.patience = .milliseconds(50) }) { nodes in
            let client = try IdentityClient(nodes.second)
            let idToken = try #require(try client.signUp("ada@example.com").tokens).idToken
            nodes.journals.second.isAway.store(true, ordering: .relaxed)
            for token in hopeless(like: idToken) {
                expectRefusal("INVALID_ID_TOKEN") { _ = try verify(client, token) }
            }
            // Another node may have made this token's key.
            let unknown = forged(like: idToken)
            expectRefusal("NODE_BEHIND") { _ = try verify(client, unknown) }
            nodes.second.clock.advance(by: .hours(2))
            expectRefusal("TOKEN_EXPIRED") { _ = try verify(client, idToken) }
        }
    }

    @Test func tokensOfUnknownKeysCountAsQuestionsOfStrangers() async throws {
        try await withTwoNodes(configure: { $0.limits.journal.strangersQuestionsPerSecond = 0 }) { nodes in
            let client = try IdentityClient(nodes.second)
            let idToken = try #require(try client.signUp("ada@example.com").tokens).idToken
            let unknown = forged(like: idToken)
            expectRefusal("NODE_BEHIND") { _ = try verify(client, unknown) }
            expectRefusal("NODE_BEHIND") { _ = try client.lookup(unknown) }
            for token in hopeless(like: idToken) {
                expectRefusal("INVALID_ID_TOKEN") { _ = try verify(client, token) }
            }
        }
    }

    /// The refusal needs no question to the engine, so clients are told to refresh, however many ask at once.
    @Test func aTokenOfARevokedKeyIsRefusedAtOnce() async throws {
        try await withTwoNodes(configure: { $0.limits.journal.strangersQuestionsPerSecond = 0 }) { nodes in
            let client = try IdentityClient(nodes.first)
            let idToken = try #require(try client.signUp("ada@example.com").tokens).idToken
            let made: TokensCreateSessionCookieResponse = try client.client.call(
                "postern.v1.Tokens/CreateSessionCookie", TokensCreateSessionCookieRequest(idToken: idToken))
            for key in nodes.first.project.signingKeys.all.flatMap({ $0.list() }) { try revoke(client, key.keyID) }
            try await nodes.second.project.store.reachJournalEnd()
            for node in [nodes.first, nodes.second] {
                let client = try IdentityClient(node)
                expectRefusal("INVALID_ID_TOKEN") { _ = try verify(client, idToken) }
                expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(idToken) }
                expectRefusal("INVALID_SESSION_COOKIE") {
                    let _: TokensVerifySessionCookieResponse = try client.client.call(
                        "postern.v1.Tokens/VerifySessionCookie",
                        TokensVerifySessionCookieRequest(sessionCookie: made.sessionCookie))
                }
            }
        }
    }

    /// A node that cannot read the row of one key still learns that another key was revoked.
    @Test func aDamagedKeyKeepsNoRevokedKeyInForce() async throws {
        try await withTwoServers { first, second in
            let (one, two) = (try IdentityClient(first), try IdentityClient(second))
            let ada = try #require(try one.signUp("ada@example.com").tokens).idToken
            let old = try #require(first.project.signingKeys.idTokens.list().first).keyID
            try rotate(one, .idToken)
            let bob = try #require(try one.signUp("bob@example.com").tokens).idToken
            let leaked = try #require(first.project.signingKeys.idTokens.list().first).keyID
            #expect(leaked != old)
            try await second.project.store.reachJournalEnd()
            let (rows, row) = (SigningTables.keys.declaration.asBytes, TextKey(old).bytes)
            try await second.project.store.write { transaction in
                try transaction.putDamaged(rows, row, try transaction.get(rows, row) ?? [])
            }
            _ = try verify(two, bob)
            try revoke(one, leaked)
            try await second.project.store.reachJournalEnd()
            expectRefusal("INVALID_ID_TOKEN") { _ = try verify(two, bob) }
            // The damaged key was read before it was damaged.
            _ = try verify(two, ada)
            let eve = try #require(try one.signUp("eve@example.com").tokens).idToken
            _ = try verify(two, eve)
        }
    }

    @Test func aTokenOfAKeyThatNoNodeHasIsInvalid() async throws {
        try await withTwoServers { first, second in
            let client = try IdentityClient(second)
            let idToken = try #require(try client.signUp("ada@example.com").tokens).idToken
            let unknown = forged(like: idToken)
            expectRefusal("INVALID_ID_TOKEN") { _ = try verify(client, unknown) }
        }
    }
}
