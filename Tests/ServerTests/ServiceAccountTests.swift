import Base
import Crypto
import Identity
import JSON
import Messages
import Service
import Store
import TestSupport
import Testing
import Wire

/// Service accounts and their keys, as a project admin manages them.
@Suite struct ServiceAccountTests {
    private func create(_ client: RawClient, _ request: ProjectCreateServiceAccountRequest) throws -> ServiceAccount {
        let made: ProjectCreateServiceAccountResponse = try client.call(
            "postern.v1.Project/CreateServiceAccount", request)
        return made.serviceAccount ?? ServiceAccount()
    }

    private func list(_ client: RawClient, size: Int32 = 0) throws -> [Text] {
        var ids: [Text] = []
        var token = Text.empty
        repeat {
            let page: ProjectListServiceAccountsResponse = try client.call(
                "postern.v1.Project/ListServiceAccounts",
                ProjectListServiceAccountsRequest(pageSize: size, pageToken: token))
            ids += page.serviceAccounts.map(\.serviceAccountID)
            token = page.nextPageToken
        } while !token.isEmpty
        return ids
    }

    private func keys(_ client: RawClient, _ id: Text = "backend") throws -> [ServiceAccountKey] {
        let listed: ProjectListServiceAccountKeysResponse = try client.call(
            "postern.v1.Project/ListServiceAccountKeys", ProjectListServiceAccountKeysRequest(serviceAccountID: id))
        return listed.keys
    }

    private func upload(_ client: RawClient, _ key: [UInt8], _ id: Text = "backend") throws -> ServiceAccountKey {
        let made: ProjectUploadServiceAccountKeyResponse = try client.call(
            "postern.v1.Project/UploadServiceAccountKey",
            ProjectUploadServiceAccountKeyRequest(serviceAccountID: id, publicKey: key))
        return made.key ?? ServiceAccountKey()
    }

    private let all = Scope(tenants: .all(true))

    // MARK: Accounts

    @Test func anAccountIsMadeReadListedChangedAndDeletedForEver() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, role: .app)
            let client = backEnd.client
            #expect(backEnd.account.email == "backend@test.postern.local" && !backEnd.account.builtIn)
            let unnamed = try create(client, ProjectCreateServiceAccountRequest(role: .verifier, scope: all))
            #expect(unnamed.serviceAccountID.byteCount == 20)
            #expect(Set(try list(client, size: 1)) == ["backend", "postern", unnamed.serviceAccountID])
            try backEnd.update(["display_name", "role", "disabled", "trusted_end_user_ip"]) {
                $0.displayName = "Shop"
                $0.role = .tenantAdmin
                $0.disabled = true
                $0.trustedEndUserIP = true
            }
            let got: ProjectGetServiceAccountResponse = try client.call(
                "postern.v1.Project/GetServiceAccount", ProjectGetServiceAccountRequest(serviceAccountID: "backend"))
            var expected = backEnd.account
            expected.displayName = "Shop"
            expected.role = .tenantAdmin
            expected.disabled = true
            expected.trustedEndUserIP = true
            #expect(got.serviceAccount == expected)
            try backEnd.delete()
            #expect(!(try list(client).contains("backend")))
            expectRefusal("SERVICE_ACCOUNT_NOT_FOUND") { try backEnd.delete() }
            expectRefusal("SERVICE_ACCOUNT_NOT_FOUND") { _ = try keys(client) }
            let again = ProjectCreateServiceAccountRequest(serviceAccountID: "backend", role: .app, scope: all)
            expectRefusal("SERVICE_ACCOUNT_ID_EXISTS") { _ = try create(client, again) }
            #expect(try server.project.store.read { try $0.count(Tables.serviceAccountKeys) } == 0)
        }
    }

    @Test func whatAnAccountMayNotBeIsRefused() async throws {
        try await withServer { server in
            let client = try server.connect()
            let none = Scope(tenants: .tenantID("nowhere"))
            let long = Text(String(repeating: "x", count: 257))
            let rows: [(ProjectCreateServiceAccountRequest, String)] = [
                (.init(serviceAccountID: "abc", scope: all), "INVALID_SERVICE_ACCOUNT_ID"),
                (.init(serviceAccountID: "a@b.c", scope: all), "INVALID_SERVICE_ACCOUNT_ID"),
                (.init(serviceAccountID: "Upper", scope: all), "INVALID_SERVICE_ACCOUNT_ID"),
                (
                    .init(serviceAccountID: Text(String(repeating: "a", count: 65)), scope: all),
                    "INVALID_SERVICE_ACCOUNT_ID"
                ),
                (.init(serviceAccountID: "good", role: .any, scope: all), "INVALID_ROLE"),
                (.init(serviceAccountID: "good"), "INVALID_SCOPE"),
                (.init(serviceAccountID: "good", scope: Scope(tenants: .all(false))), "INVALID_SCOPE"),
                (
                    .init(serviceAccountID: "good", role: .projectAdmin, scope: Scope(tenants: .tenantID(""))),
                    "INVALID_SCOPE"
                ),
                (.init(serviceAccountID: "good", displayName: long, scope: all), "INVALID_DISPLAY_NAME"),
                (.init(serviceAccountID: "good", scope: none), "TENANT_NOT_FOUND"),
                (.init(serviceAccountID: "postern", scope: all), "SERVICE_ACCOUNT_ID_EXISTS"),
            ]
            for (request, reason) in rows { expectRefusal(reason) { _ = try create(client, request) } }
            _ = try create(client, .init(serviceAccountID: "good", scope: all, validateOnly: true))
            #expect(try list(client) == ["postern"])
        }
    }

    @Test func whatAnUpdateMayNotMakeOfItIsRefused() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, role: .app, scope: Scope(tenants: .tenantID("")))
            let rows: [([Text], (inout ProjectUpdateServiceAccountRequest) -> Void, String)] = [
                ([], { _ in }, "INVALID_UPDATE_MASK"), (["email"], { _ in }, "INVALID_UPDATE_MASK"),
                (["built_in"], { _ in }, "INVALID_UPDATE_MASK"), (["role"], { $0.role = .any }, "INVALID_ROLE"),
                (["role"], { $0.role = .projectAdmin }, "INVALID_SCOPE"), (["scope"], { _ in }, "INVALID_SCOPE"),
                (["scope"], { $0.scope = Scope(tenants: .tenantID("nowhere")) }, "TENANT_NOT_FOUND"),
                (["role"], { $0.serviceAccountID = "nobody" }, "SERVICE_ACCOUNT_NOT_FOUND"),
                (["role"], { $0.serviceAccountID = "" }, "SERVICE_ACCOUNT_NOT_FOUND"),
            ]
            for (paths, change, reason) in rows {
                expectRefusal(reason, "\(paths)") { try backEnd.update(paths, change) }
            }
            try backEnd.update(["disabled"]) {
                $0.disabled = true
                $0.validateOnly = true
            }
            _ = try backEnd.signIn(backEnd.token())
        }
    }

    // MARK: Keys

    @Test func aKeyFileIsWhatAdminSDKsReadAndIsToldOnce() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, algorithm: "")
            let file = backEnd.keyFile
            #expect(backEnd.key.algorithm == .rs256)
            #expect(file["type"] == "service_account" && file["project_id"] == "test")
            #expect(file["private_key_id"]?.text == backEnd.keyID && file["client_id"] == "backend")
            #expect(file["client_email"]?.text == backEnd.account.email)
            #expect(file["token_uri"] == "https://issuer.test/test/token")
            #expect(file["private_key"]?.string?.hasPrefix("-----BEGIN PRIVATE KEY-----\n") == true)
            let request = ProjectCreateServiceAccountKeyRequest(serviceAccountID: "backend", algorithm: "ES256")
            let key = [OutgoingMetadata.Entry(key: "idempotency-key", value: "k1")]
            let method = "postern.v1.Project/CreateServiceAccountKey"
            let _: ProjectCreateServiceAccountKeyResponse = try backEnd.client.call(method, request, metadata: key)
            let again = failure {
                let _: ProjectCreateServiceAccountKeyResponse = try backEnd.client.call(method, request, metadata: key)
            }
            #expect(again.reason == "ALREADY_DONE")
            #expect(try keys(backEnd.client).count == 2)
            // Nothing in the store can sign for the account.
            let privatePart = backEnd.key.exportDER().withBytes { [UInt8]($0) }
            let stored = try server.project.store.read { transaction in
                try transaction.get(Tables.serviceAccountKeys, ServiceAccountKeyKey("backend", backEnd.keyID))
            }
            #expect(stored?.sealedPrivateKey.isEmpty == true && stored?.publicKey != privatePart)
        }
    }

    @Test func aPublicKeyIsTakenAsPEMOrJWK() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            for algorithm in [SigningAlgorithm.es256, .rs256] {
                for asJWK in [false, true] {
                    let pair = newKeyPair(algorithm)
                    let members = pair.publicKey.jwk.members.map {
                        JSONValue.Member(Text("\($0.name)"), .string($0.value))
                    }
                    let jwk = JSONValue.object(members).with("kid", "theirs").with("use", "sig")
                        .with("key_ops", ["wrapKey", "verify"])
                    let made = try upload(backEnd.client, asJWK ? jwk.serialized() : spkiPEM(pair))
                    #expect(made.keyID == pair.publicKey.keyID && made.uploaded)
                    let header = backEnd.header.with("alg", .string(made.algorithm)).with("kid", .string(made.keyID))
                    _ = try backEnd.signIn(backEnd.token(header: header, signedBy: pair))
                    let twice = failure { _ = try upload(backEnd.client, spkiPEM(pair)) }
                    #expect(twice.reason == "SERVICE_ACCOUNT_KEY_EXISTS")
                }
            }
        }
    }

    @Test func whatIsNoSoundPublicKeyIsRefused() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let pair = newKeyPair()
            let jwk = JSONValue.object(
                pair.publicKey.jwk.members.map { JSONValue.Member(Text("\($0.name)"), .string($0.value)) })
            let privatePart = PEM.encode("PRIVATE KEY", pair.exportDER()).withBytes { [UInt8]($0) }
            let small = PublicJWK.rsa(modulus: [0xC1] + [UInt8](repeating: 0x11, count: 127), exponent: [1, 0, 1])
            let even = PublicJWK.rsa(modulus: [0xC1] + [UInt8](repeating: 0x10, count: 255), exponent: [1, 0, 1])
            func serialized(_ jwk: PublicJWK) -> [UInt8] {
                JSONValue.object(jwk.members.map { JSONValue.Member(Text("\($0.name)"), .string($0.value)) })
                    .serialized()
            }
            let rows: [(String, [UInt8])] = [
                ("nothing", []), ("a word", [UInt8]("key".utf8)), ("too long", [UInt8](repeating: 0x20, count: 8_193)),
                ("a private key", privatePart), ("DER", pair.publicKey.exportSPKI()),
                ("a private JWK", jwk.with("d", "AAAA").serialized()),
                ("a symmetric JWK", JSONValue.object([.init("kty", "oct"), .init("k", "AAAA")]).serialized()),
                (
                    "a point off the curve",
                    jwk.with("x", .string(Text(Base64.url.encodeToString([UInt8](repeating: 7, count: 32)))))
                        .serialized()
                ),
                ("another curve", jwk.with("crv", "P-384").serialized()),
                ("for encryption", jwk.with("use", "enc").serialized()),
                ("to encrypt with", jwk.with("key_ops", ["encrypt"]).serialized()),
                ("to sign with", jwk.with("key_ops", ["sign"]).serialized()),
                ("for nothing", jwk.with("key_ops", []).serialized()),
                ("an operation twice", jwk.with("key_ops", ["verify", "verify"]).serialized()),
                ("operations of no form", jwk.with("key_ops", "verify").serialized()),
                ("an operation of no form", jwk.with("key_ops", ["verify", 1]).serialized()),
                ("no operations", jwk.with("key_ops", .null).serialized()),
                ("for another algorithm", jwk.with("alg", "RS256").serialized()),
                ("RSA of 1,024 bits", serialized(small)), ("RSA with a small factor", serialized(even)),
                ("Ed25519", spkiPEM(newKeyPair(.edDSA))), ("a list", [UInt8]("[]".utf8)),
            ]
            for (name, key) in rows {
                expectRefusal("INVALID_PUBLIC_KEY", "\(name)") { _ = try upload(backEnd.client, key) }
            }
            #expect(try keys(backEnd.client).count == 1)
        }
    }

    @Test func aRevokedKeyStaysRevoked() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let pair = newKeyPair()
            let made = try upload(backEnd.client, spkiPEM(pair))
            let revoke: (Text, Text, Bool) throws -> Int64 = { id, keyID, validateOnly in
                let answer: ProjectRevokeServiceAccountKeyResponse = try backEnd.client.call(
                    "postern.v1.Project/RevokeServiceAccountKey",
                    ProjectRevokeServiceAccountKeyRequest(
                        serviceAccountID: id, keyID: keyID, validateOnly: validateOnly))
                return answer.key?.revokedAtMicros ?? -1
            }
            #expect(try revoke("backend", made.keyID, true) == 0)
            let revokedAt = try revoke("backend", made.keyID, false)
            server.clock.advance(by: .seconds(1))
            #expect(revokedAt > 0)
            #expect(try revoke("backend", made.keyID, false) == revokedAt)
            expectRefusal("SERVICE_ACCOUNT_KEY_EXISTS") { _ = try upload(backEnd.client, spkiPEM(pair)) }
            for keyID in ["", "x", Text(String(repeating: "k", count: 2_000))] as [Text] {
                expectRefusal("SERVICE_ACCOUNT_KEY_NOT_FOUND") { _ = try revoke("backend", keyID, false) }
            }
            expectRefusal("SERVICE_ACCOUNT_NOT_FOUND") { _ = try revoke("nobody", made.keyID, false) }
        }
    }

    @Test func anAccountHasSoManyKeysThatCountAndSoManyInAll() async throws {
        try await withServer(configure: {
            $0.limits.serviceAccountKeysMax = 3
            $0.limits.serviceAccountKeysKeptMax = 5
        }) { server in
            let backEnd = try BackEnd(server)
            let client = backEnd.client
            var made: [Text] = []
            for _ in 0..<2 { made.append(try upload(client, spkiPEM(newKeyPair())).keyID) }
            let more = spkiPEM(newKeyPair())
            expectRefusal("TOO_MANY_SERVICE_ACCOUNT_KEYS") { _ = try upload(client, more) }
            for _ in 0..<4 {
                server.clock.advance(by: .seconds(1))
                let _: ProjectRevokeServiceAccountKeyResponse = try client.call(
                    "postern.v1.Project/RevokeServiceAccountKey",
                    ProjectRevokeServiceAccountKeyRequest(
                        serviceAccountID: "backend", keyID: made.last ?? .empty))
                made.append(try upload(client, spkiPEM(newKeyPair())).keyID)
            }
            let kept = try keys(client)
            #expect(kept.count == 5 && kept.count { $0.revokedAtMicros == 0 } == 3)
            // The revoked ones that were made first made room.
            #expect(Set(kept.map(\.keyID)) == [backEnd.keyID, made[0], made[3], made[4], made[5]])
        }
    }

    @Test func aKeysLifetimeAndAlgorithmAreHeldToTheRules() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            let create: (Text, Int64, Bool) throws -> ProjectCreateServiceAccountKeyResponse = {
                try backEnd.client.call(
                    "postern.v1.Project/CreateServiceAccountKey",
                    ProjectCreateServiceAccountKeyRequest(
                        serviceAccountID: "backend", algorithm: $0, lifetimeSeconds: $1, validateOnly: $2))
            }
            for algorithm in ["EdDSA", "HS256", "none", "es256"] as [Text] {
                expectRefusal("INVALID_ALGORITHM") { _ = try create(algorithm, 0, false) }
            }
            for lifetime in [-1, Int64.min, Int64.max, 315_360_001] {
                expectRefusal("INVALID_DURATION") { _ = try create("ES256", lifetime, false) }
            }
            let dry = try create("ES256", 315_360_000, true)
            #expect(dry.keyFileJSON.isEmpty)
            #expect(try keys(backEnd.client).count == 1)
            let made = try create("ES256", 60, false)
            #expect(made.key?.expiresAtMicros == server.clock.clock.now().microseconds + 60_000_000)
        }
    }

    @Test func everyChangeIsInTheEventLog() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            try backEnd.update(["role"]) { $0.role = .app }
            try backEnd.revokeKey()
            try backEnd.delete()
            let events = try server.project.store.read { transaction in
                var events: [String] = []
                try transaction.scanEvents(tenant: .empty) { stored in
                    let event = try EventRecord(decoding: stored.payload)
                    if "\(event.kind)".hasPrefix("serviceAccount") { events.append("\(event.kind) \(event.detail)") }
                    return true
                }
                return events
            }
            #expect(
                events == [
                    "serviceAccountCreated postern", "serviceAccountCreated backend",
                    "serviceAccountKeyCreated \(backEnd.keyID)", "serviceAccountUpdated backend",
                    "serviceAccountKeyRevoked \(backEnd.keyID)", "serviceAccountDeleted backend",
                ])
        }
    }
}
