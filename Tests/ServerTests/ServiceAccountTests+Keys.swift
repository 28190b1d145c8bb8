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

/// The keys of service accounts.
extension ServiceAccountTests {
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
            // The oldest revoked keys made room.
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
}
