import Base
import Crypto
import Identity
import JSON
import Messages
import Store
import TestSupport
import Testing
import Tokens

@testable import Signing

/// An attacker has the private part of a signing key, and makes tokens for any user. From the moment the key is
/// revoked, the server and its verifiers accept none of them, and everybody else goes on.
@Suite struct RevokedSigningKeyAttackTests {
    private static func keys(_ client: IdentityClient) throws -> [SigningKeyInfo] {
        let answer: ProjectListSigningKeysResponse = try client.client.call(
            "postern.v1.Project/ListSigningKeys", ProjectListSigningKeysRequest())
        return answer.keys
    }

    private static func signing(_ client: IdentityClient, _ use: TokenUse = .idToken) throws -> Text {
        try keys(client).first { $0.tokenUse == use && $0.state == .signing }!.keyID
    }

    private static func revoke(
        _ client: IdentityClient, _ keyID: Text, validateOnly: Bool = false
    ) throws -> ProjectRevokeSigningKeyResponse {
        try client.client.call(
            "postern.v1.Project/RevokeSigningKey",
            ProjectRevokeSigningKeyRequest(keyID: keyID, validateOnly: validateOnly))
    }

    private static func rotate(_ client: IdentityClient, ahead: Int64) throws -> Text {
        let made: ProjectRotateSigningKeyResponse = try client.client.call(
            "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest(publishAheadSeconds: ahead))
        return made.key!.keyID
    }

    private static func cookie(_ client: IdentityClient, _ idToken: Text) throws -> Text {
        let made: TokensCreateSessionCookieResponse = try client.client.call(
            "postern.v1.Tokens/CreateSessionCookie", TokensCreateSessionCookieRequest(idToken: idToken))
        return made.sessionCookie
    }

    private static func verify(cookie: Text, _ client: IdentityClient) throws {
        let _: TokensVerifySessionCookieResponse = try client.client.call(
            "postern.v1.Tokens/VerifySessionCookie", TokensVerifySessionCookieRequest(sessionCookie: cookie))
    }

    private static func jwks(_ client: IdentityClient, _ use: TokenUse = .idToken) throws -> String {
        let answer: TokensListKeysResponse = try client.client.call(
            "postern.v1.Tokens/ListKeys", TokensListKeysRequest(tokenUse: use))
        return String(decoding: answer.jwksJSON, as: UTF8.self)
    }

    @Test func `Tokens of a revoked key are refused at once, and sessions go on`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let ada = try client.signUp("ada@example.com").tokens!
            let cookie = try Self.cookie(client, ada.idToken)
            let keyID = try Self.signing(client)
            // Two lookups, so that the cache of verified tokens has the token.
            for _ in 0..<2 { _ = try client.lookup(ada.idToken) }
            #expect(try Self.revoke(client, keyID, validateOnly: true).successor == nil)
            _ = try client.lookup(ada.idToken)
            let revoked = try Self.revoke(client, keyID)
            #expect(revoked.key?.state == .revoked && revoked.successor?.state == .signing)
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(ada.idToken) }
            #expect(try !Self.jwks(client).contains(keyID.string))
            let signing = try Self.signing(client)
            #expect(signing == revoked.successor?.keyID)
            let renewed = try client.refresh(ada.refreshToken).tokens!
            _ = try client.lookup(renewed.idToken)
            // Cookies have keys of their own.
            try Self.verify(cookie: cookie, client)
            let again = try Self.revoke(client, keyID)
            #expect(again.key == revoked.key && again.successor == nil)
            _ = try client.lookup(renewed.idToken)
            expectRefusal("SIGNING_KEY_NOT_FOUND") { _ = try Self.revoke(client, "nobody's") }
            expectRefusal("SIGNING_KEY_NOT_FOUND") { _ = try Self.revoke(client, "") }
        }
    }

    @Test func `A cookie key is revoked alike`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let ada = try client.signUp("ada@example.com").tokens!
            let cookie = try Self.cookie(client, ada.idToken)
            try Self.verify(cookie: cookie, client)
            let keyID = try Self.signing(client, .sessionCookie)
            _ = try Self.revoke(client, keyID)
            expectRefusal("INVALID_SESSION_COOKIE") { try Self.verify(cookie: cookie, client) }
            #expect(try !Self.jwks(client, .sessionCookie).contains(keyID.string))
            _ = try client.lookup(ada.idToken)
            try Self.verify(cookie: Self.cookie(client, ada.idToken), client)
        }
    }

    @Test func `A forger with the private part gets nowhere`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let victim = try client.signUp("ada@example.com")
            let keyID = try Self.signing(client)
            let leaked = try #require(server.project.signingKeys.idTokens.privateKey(keyID))
            // The claims of a real token, with new times.
            let parts = victim.tokens!.idToken.bytes.split(separator: UInt8(ascii: "."))
            let claims = try JSONValue(parsing: Base64.url.decode(Array(parts[1]))!)
            func forge() -> Text {
                let now = server.clock.clock.now().seconds
                let payload = claims.replacing("iat", .integer(now)).replacing("exp", .integer(now + 3_600))
                let signed = Array(parts[0]) + [UInt8(ascii: ".")] + Base64.url.encode(payload.serialized())
                let signature = Base64.url.encode(leaked.sign(signed))
                return Text(unchecked: signed + [UInt8(ascii: ".")] + signature)
            }
            #expect(try client.lookup(forge()).uid == victim.user?.uid)
            _ = try Self.revoke(client, keyID)
            for time in [Duration.zero, .hours(1), .days(1), .days(30)] {
                server.clock.advance(by: time)
                expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(forge()) }
                await server.project.sweep()
            }
        }
    }

    @Test func `Whatever is left of the keys after a leak, one of them signs`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            func tokenOfNow() throws -> Text { try client.signUp().tokens!.idToken }
            // A key that does not sign yet is replaced by one that begins at the same time; the signing key goes on.
            let first = try Self.signing(client)
            let waiting = try Self.rotate(client, ahead: 3_600)
            let other = try Self.revoke(client, waiting).successor!
            #expect(other.state == .published)
            #expect(try Self.signing(client) == first)
            server.clock.advance(by: .hours(1))
            #expect(try Self.signing(client) == other.keyID)
            // An old key that only verifies needs no successor.
            let old = try tokenOfNow()
            #expect(try Self.revoke(client, first).successor == nil)
            _ = try client.lookup(old)
            // The signing key is revoked while another waits: its successor signs at once.
            _ = try Self.rotate(client, ahead: 3_600)
            let urgent = try Self.revoke(client, other.keyID).successor!
            #expect(try Self.signing(client) == urgent.keyID)
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(old) }
            let alive = try tokenOfNow()
            server.clock.advance(by: .minutes(59))
            #expect(try Self.signing(client) == urgent.keyID)
            _ = try client.lookup(alive)
            #expect(try Self.keys(client).filter { $0.state == .revoked }.count == 3)
            server.clock.advance(by: .days(16))
            await server.project.sweep()
            #expect(try Self.keys(client).filter { $0.state == .revoked }.isEmpty)
            _ = try client.lookup(try tokenOfNow())
        }
    }

    @Test func `It holds after a restart, and nothing of the private part is left`() async throws {
        try await withTemporaryDirectory { directory in
            let clock = ManualClock()
            let masterKey = MasterKey.generate(random: .system)
            let left = try await withServer(directory: directory, clock: clock, masterKey: masterKey) { server in
                let client = try IdentityClient(server)
                let token = try client.signUp("ada@example.com").tokens!.idToken
                let keyID = try Self.signing(client)
                _ = try Self.revoke(client, keyID)
                let stored = try server.project.store.read { try $0.get(SigningTables.keys, TextKey(keyID)) }
                #expect(stored?.sealedPrivateKey.isEmpty == true)
                return (token, server.adminKey)
            }
            try await withServer(directory: directory, clock: clock, masterKey: masterKey, adminKey: left.1) { server in
                let client = try IdentityClient(server)
                expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(left.0) }
                #expect(try Self.keys(client).filter { $0.state == .signing }.count == 2)
            }
        }
    }

    /// Another node writes the same rows. Here the code that publishes a node's own changes does not run.
    @Test func `It holds where only the store tells of it`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let token = try client.signUp("ada@example.com").tokens!.idToken
            let keyID = try Self.signing(client)
            _ = try Self.rotate(client, ahead: 0)
            _ = try client.lookup(token)
            try await server.project.store.write { transaction in
                try transaction.delete(SigningTables.keys, TextKey(keyID))
            }
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(token) }
        }
    }

    @Test func `Verifiers of every tenant are told, those who come later as well`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let keyID = try Self.signing(client)
            func open(_ tenantID: Text, any: Bool) throws -> RawStream<TokensWatchRevocationsResponse> {
                try RawStream(
                    server, "postern.v1.Tokens/WatchRevocations",
                    TokensWatchRevocationsRequest(tenantID: tenantID, anyTenant: any, heartbeatSeconds: 1))
            }
            func isTold(_ stream: RawStream<TokensWatchRevocationsResponse>) throws -> Bool {
                for _ in 0..<20 {
                    guard let message = try stream.next() else { return false }
                    let isAboutKey = message.revocations.contains { $0.kind == .signingKey && $0.keyID == keyID }
                    if isAboutKey { return true }
                }
                return false
            }
            let streams = try [open("", any: false), open("acme", any: false), open("", any: true)]
            for stream in streams { #expect(try stream.next()?.snapshotReason == .noCursor) }
            _ = try Self.revoke(client, keyID)
            for stream in streams { #expect(try isTold(stream)) }
            // Ten days later, verifiers of ID tokens have long forgotten the other revocations of that time.
            server.clock.advance(by: .days(10))
            for stream in try [open("", any: false), open("acme", any: false), open("", any: true)] {
                #expect(try isTold(stream))
            }
        }
    }
}
