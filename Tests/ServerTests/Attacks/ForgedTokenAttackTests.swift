import Base
import Identity
import Messages
import Rules
import Store
import TestSupport
import Testing
import Tokens

/// Somebody has copied a signing key, knows the id of a live session from an old ID token, and writes tokens that say
/// what they like.
@Suite struct ForgedTokenAttackTests {
    /// A genuine signature under the claims of the token's session after `change`.
    private static func forge(
        _ server: TestServer, from idToken: Text, _ change: (inout User, inout StoredSession) -> Void
    ) async throws -> Text {
        let project = server.project
        let token = try project.tokenCheck.verifyExpired(idToken)
        var (user, session, settings) = try project.store.read { transaction in
            (
                try #require(try transaction.user(UserKey(.empty, token.uid))),
                try #require(try transaction.get(Tables.sessions, SessionKey(token.sessionID))),
                try project.tenants.settings(of: .empty, in: transaction)
            )
        }
        change(&user, &session)
        let now = server.clock.clock.now()
        return try await project.tokens.issuer.token(
            for: user, session: session, sessionID: token.sessionID, settings: settings, now: now,
            lifetime: .hours(1), deadline: .distantFuture
        ).token
    }

    @Test func `A forged login is no recent one`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let owners = try client.verifiedUser("ada@example.com")
            server.clock.advance(by: .hours(2))
            let forged = try await Self.forge(server, from: owners.idToken) { _, session in
                session.authTimeMicros = server.clock.clock.now().microseconds
            }
            // It is genuine as far as anybody can tell.
            _ = try client.lookup(forged)
            let tooOld = "CREDENTIAL_TOO_OLD_LOGIN_AGAIN"
            expectRefusal(tooOld) {
                let _: AccountsUpdateResponse = try client.client.call(
                    "postern.v1.Accounts/Update",
                    AccountsUpdateRequest(
                        idToken: forged, updateMask: ProtobufFieldMask(paths: ["password"]),
                        password: Secret("another horse")))
            }
            expectRefusal(tooOld) {
                let _: TokensCreateSessionCookieResponse = try client.client.call(
                    "postern.v1.Tokens/CreateSessionCookie", TokensCreateSessionCookieRequest(idToken: forged))
            }
            expectRefusal(tooOld) {
                let _: AccountsDeleteResponse = try client.client.call(
                    "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: forged))
            }
            expectRefusal(tooOld) {
                try client.sendOob(.verifyAndChangeEmail, newEmail: "mallory@example.com", idToken: forged)
            }
            try client.setFactors(.enabled)
            expectRefusal(tooOld) { _ = try client.startApp(forged) }
        }
    }

    @Test func `A token of a generation that is still to come is refused`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let owners = try client.verifiedUser("ada@example.com")
            for generation in [1, 1_000_000_000, Int64.max / 2] {
                let forged = try await Self.forge(server, from: owners.idToken) { user, _ in
                    user.tokensValidAfterMicros += generation
                }
                // Twice, because the second time the rows' content is known.
                for _ in 0..<2 { expectRefusal("TOKEN_EXPIRED", cause: "EXPIRED") { _ = try client.lookup(forged) } }
            }
            for _ in 0..<2 { _ = try client.lookup(owners.idToken) }
        }
    }

    @Test func `Revoking the key ends the streams that its tokens began, and rotating it does not`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let owners = try client.verifiedUser("ada@example.com")
            let stream = try RawStream<SessionsWatchAuthStateResponse>(
                server, "postern.v1.Sessions/WatchAuthState", SessionsWatchAuthStateRequest(idToken: owners.idToken))
            #expect(try stream.next()?.change == .initial)
            let old = try #require(client.keyIDs().first)
            let _: ProjectRotateSigningKeyResponse = try client.client.call(
                "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest())
            let uid = try client.lookup(owners.idToken).uid
            try client.update(uid, ["display_name"]) { $0.displayName = "Ada" }
            #expect(try stream.next()?.change == .profileChanged)
            let _: ProjectRevokeSigningKeyResponse = try client.client.call(
                "postern.v1.Project/RevokeSigningKey", ProjectRevokeSigningKeyRequest(keyID: old))
            try client.update(uid, ["display_name"]) { $0.displayName = "Lovelace" }
            expectRefusal("INVALID_ID_TOKEN") { _ = try stream.next() }
        }
    }
}

extension IdentityClient {
    /// The ids of the keys that sign ID tokens, the newest first.
    fileprivate func keyIDs() throws -> [Text] {
        let answer: ProjectListSigningKeysResponse = try client.call(
            "postern.v1.Project/ListSigningKeys", ProjectListSigningKeysRequest())
        return answer.keys.filter { $0.tokenUse == .idToken }.map(\.keyID)
    }
}
