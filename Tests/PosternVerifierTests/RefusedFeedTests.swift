import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternVerifier

/// A verifier whose feed the server refuses: its error says why, because waiting does not help.
@Suite struct RefusedFeedTests {
    private static func failure(_ verifier: TokenVerifier, _ token: Text) -> Failure? {
        do throws(Failure) {
            _ = try verifier.verifyNow(token.string)
            return nil
        } catch {
            return error
        }
    }

    @Test(
        arguments: [
            (Failure(.callerUnauthenticated, "No."), "CALLER_UNAUTHENTICATED"),
            (Failure(.tooManyStreams, "Later."), "TOO_MANY_STREAMS"),
            (Failure(.internal, "Sorry."), "INTERNAL"),
            (Failure(.connectionLost, "Gone."), nil),
            (Failure(.serverShuttingDown, "Bye."), nil),
        ] as [(Failure, String?)])
    func `Every failure but the server's absence is told as the cause`(failure: Failure, cause: String?) {
        let followed = FollowedRevocations(retention: .hours(2), at: .nowWithSleep)
        followed.streamEnded(failure)
        #expect(followed.feedRefusal?.reason == cause)
        followed.streamEnded(nil)
        #expect(followed.feedRefusal == nil)
    }

    @Test func `A stale verifier says that its credential was revoked`() async throws {
        try await withServer { server in
            let admin = try server.connect()
            let made: ProjectCreateApiKeyResponse = try admin.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .verifier, scope: Scope(tenants: .all(true))))
            let signedUp: AccountsSignUpResponse = try admin.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(email: "ada@example.com", password: Secret("correct horse")))
            let token = try #require(signedUp.tokens).idToken
            let channel = try Channel(address: "127.0.0.1:\(server.port)", credentials: .apiKey(made.secretKey))
            var options = VerifierOptions()
            options.staleAfter = .zero
            let verifier = try await TokenVerifier(channel: channel, options: options)
            #expect(Self.failure(verifier, token)?.metadataValue("cause") == nil)
            let keyID = try #require(made.apiKey).apiKeyID
            let _: ProjectRevokeApiKeyResponse = try admin.call(
                "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: keyID))
            var stale: Failure?
            try await until("the verifier says that its key is refused") {
                stale = Self.failure(verifier, token)
                return stale?.metadataValue("cause") == "CALLER_UNAUTHENTICATED"
            }
            #expect(stale?.reason == "VERIFIER_STALE")
            await channel.shutdown()
        }
    }
}
