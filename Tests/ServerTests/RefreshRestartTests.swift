import Base
import Crypto
import Identity
import Messages
import TestSupport
import Testing

/// A restart of the server keeps everything of a session's refresh tokens.
@Suite struct RefreshRestartTests {
    private static let attempt = [UInt8](repeating: 7, count: 16)

    private static func refresh(
        _ client: IdentityClient, _ token: Text, attempt: [UInt8] = []
    ) throws -> TokensRefreshResponse {
        try client.client.call(
            "postern.v1.Tokens/Refresh", TokensRefreshRequest(refreshToken: token, attemptID: attempt))
    }

    /// Runs `before`, restarts the server, and runs `after` with what `before` left.
    private static func acrossARestart<Left: Sendable>(
        _ before: @Sendable (IdentityClient) throws -> Left, _ after: @Sendable (IdentityClient, Left) throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let clock = ManualClock()
            let masterKey = MasterKey.generate(random: .system)
            let (left, adminKey) = try await withServer(directory: directory, clock: clock, masterKey: masterKey) {
                server in
                (try before(IdentityClient(server)), server.adminKey)
            }
            try await withServer(directory: directory, clock: clock, masterKey: masterKey, adminKey: adminKey) {
                server in
                try after(IdentityClient(server), left)
            }
        }
    }

    @Test func aLostAnswerIsGivenAgain() async throws {
        try await Self.acrossARestart { client throws -> (Text, Text) in
            let first = try client.signUp("ada@example.com").tokens!.refreshToken
            // The answer is lost with the server that gave it.
            return (first, try Self.refresh(client, first, attempt: Self.attempt).tokens!.refreshToken)
        } _: { client, tokens in
            client.server.clock.advance(by: .hours(24 * 20))
            let again = try Self.refresh(client, tokens.0, attempt: Self.attempt)
            #expect(again.outcome == .repeatedAfterLoss)
            #expect(again.tokens?.refreshToken == tokens.1)
            let next = try Self.refresh(client, tokens.1)
            #expect(next.outcome == .rotated)
        }
    }

    @Test func reuseEndsExactlyThatSession() async throws {
        try await Self.acrossARestart { client in
            let stolen = try client.signUp("ada@example.com").tokens!.refreshToken
            let other = try client.signIn("ada@example.com").tokens!.refreshToken
            return (stolen, try Self.refresh(client, stolen).tokens!.refreshToken, other)
        } _: { client, tokens in
            let (stolen, successor, other) = tokens
            client.server.clock.advance(by: .seconds(11))
            expectRefusal("TOKEN_EXPIRED") { _ = try Self.refresh(client, stolen) }
            let refused = failure { _ = try Self.refresh(client, successor) }
            #expect(refused.metadata("cause") == "REVOKED_BY_REUSE")
            let next = try Self.refresh(client, other)
            #expect(next.outcome == .rotated)
        }
    }

    @Test func aSignedOutSessionStaysSignedOut() async throws {
        try await Self.acrossARestart { client in
            let tokens = try client.signUp("ada@example.com").tokens!
            let _: SessionsSignOutResponse = try client.client.call(
                "postern.v1.Sessions/SignOut", SessionsSignOutRequest(idToken: tokens.idToken))
            return tokens
        } _: { client, tokens in
            let refused = failure { _ = try Self.refresh(client, tokens.refreshToken) }
            #expect(refused.metadata("cause") == "SIGNED_OUT")
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(tokens.idToken) }
        }
    }
}
