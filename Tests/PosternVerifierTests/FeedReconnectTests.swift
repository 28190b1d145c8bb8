import Base
import Crypto
import Messages
import PosternClient
import Synchronization
import TestSupport
import Testing
import Transport

@testable import PosternVerifier

/// A verifier whose server goes away and comes back.
@Suite struct FeedReconnectTests {
    private struct Kept: Sendable {
        let verifier: TokenVerifier
        let channel: Channel
        let token: Text
        let adminKey: Secret
    }

    private static func signUp(_ server: TestServer, _ email: Text) throws -> Text {
        let made: AccountsSignUpResponse = try server.connect().call(
            "postern.v1.Accounts/SignUp", AccountsSignUpRequest(email: email, password: Secret("correct horse")))
        return try #require(made.tokens).idToken
    }

    private static func revokeSigningKey(_ server: TestServer) throws {
        let keys: ProjectListSigningKeysResponse = try server.connect().call(
            "postern.v1.Project/ListSigningKeys", ProjectListSigningKeysRequest())
        let keyID = try #require(keys.keys.first { $0.tokenUse == .idToken }?.keyID)
        let _: ProjectRevokeSigningKeyResponse = try server.connect().call(
            "postern.v1.Project/RevokeSigningKey", ProjectRevokeSigningKeyRequest(keyID: keyID))
    }

    /// Runs `body` with a new server in the same place, whose port is not open yet, and with a verifier of the old one.
    private static func withRestart(
        _ options: ChannelOptions, _ body: @escaping @Sendable (TestServer, Kept, UInt16) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let (masterKey, clock, port) = (MasterKey.generate(random: .system), ManualClock(), try freePort())
            let kept = try await withServer(directory: directory, clock: clock, masterKey: masterKey) { server in
                let listener = try server.listen(port: port)
                defer { listener.close() }
                let channel = try Channel(
                    address: "127.0.0.1:\(port)", credentials: .apiKey(server.adminKey), options: options)
                return Kept(
                    verifier: try await TokenVerifier(channel: channel), channel: channel,
                    token: try signUp(server, "ada@example.com"), adminKey: server.adminKey)
            }
            try await withServer(
                directory: directory, clock: clock, masterKey: masterKey, adminKey: kept.adminKey
            ) { server in try await body(server, kept, port) }
            await kept.channel.shutdown()
        }
    }

    @Test func `The feed does not wait for the end of the channel's pause`() async throws {
        var options = ChannelOptions()
        options.reconnect.firstDelay = .minutes(10)
        try await Self.withRestart(options) { server, kept, port in
            // Until now the channel has failed to connect.
            try await Self.untilItFails(kept.channel)
            try Self.revokeSigningKey(server)
            let listener = try server.listen(port: port)
            defer { listener.close() }
            try await kept.verifier.becomes("INVALID_ID_TOKEN", kept.token)
        }
    }

    private static func untilItFails(_ channel: Channel) async throws {
        try await until("the channel has failed to connect") {
            do throws(Failure) {
                _ = try await ProjectClient(channel: channel).serverInfo(ProjectServerInfoRequest())
                return false
            } catch {
                return error.reason == "CONNECTION_FAILED"
            }
        }
    }

    @Test func `A key that the first message behind the cursor revokes has its successor fetched`() async throws {
        var options = ChannelOptions()
        options.reconnect.firstDelay = .milliseconds(20)
        try await Self.withRestart(options) { server, kept, port in
            try Self.revokeSigningKey(server)
            let token = try Self.signUp(server, "bob@example.com")
            let listener = try server.listen(port: port)
            defer { listener.close() }
            try await kept.verifier.becomes("", token)
            #expect(kept.verifier.reason(kept.token) == "INVALID_ID_TOKEN")
        }
    }
}
