import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing
import Wire

/// One end user uses up idempotency keys.
@Suite struct IdempotencyAttackTests {
    private static let limit = 5

    private static func signIn(_ client: RawClient, _ email: Text, key: Int) throws {
        _ = try client.call(
            "postern.v1.Accounts/SignInWithPassword",
            AccountsSignInWithPasswordRequest(email: email, password: Secret("correct horse")),
            returning: AccountsSignInWithPasswordResponse.self,
            metadata: [OutgoingMetadata.Entry(key: "idempotency-key", value: Text("key-\(key)"))])
    }

    private static func hashCount(_ server: TestServer) -> UInt64 {
        server.project.passwords.computed.all.reduce(0) { $0 + $1.count }
    }

    @Test func `One end user's keys are used up for that user only, and a refused call computes no hash`() async throws
    {
        try await withServer(configure: { $0.limits.idempotencyRecordsPerSubjectMax = Self.limit }) { server in
            let client = try server.client(as: .app, of: "")
            let identity = try IdentityClient(server)
            for email in ["mallory@example.com", "ada@example.com"] as [Text] { _ = try identity.signUp(email) }
            for key in 0..<Self.limit { try Self.signIn(client, "mallory@example.com", key: key) }
            let before = Self.hashCount(server)
            for key in 100..<110 {
                expectRefusal("TOO_MANY_IDEMPOTENCY_KEYS") {
                    // The limit counts the address in any spelling.
                    try Self.signIn(client, key % 2 == 0 ? "mallory@example.com" : "MALLORY@example.com", key: key)
                }
            }
            #expect(Self.hashCount(server) == before)
            #expect(server.project.idempotencyRefusals.value == 10)
            try Self.signIn(client, "ada@example.com", key: 100)
            // Another credential has its own limit, and a call without a key is not limited.
            try Self.signIn(try server.client(as: .app, of: ""), "mallory@example.com", key: 100)
            _ = try identity.signIn("mallory@example.com")
        }
    }

    /// Thousands may share one address (carrier-grade NAT, an office): the calls of one must not refuse the others.
    @Test func `People behind one address do not use up each other's keys`() async throws {
        try await withServer(configure: { $0.limits.idempotencyRecordsPerSubjectMax = Self.limit }) { server in
            try server.updateTenant("", ["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            let client = try server.client(as: .app, of: "", trustsEndUserIP: true)
            for key in 0..<4 * Self.limit {
                _ = try client.call(
                    "postern.v1.Accounts/SignUp", AccountsSignUpRequest(endUserIP: "198.51.100.7"),
                    returning: AccountsSignUpResponse.self,
                    metadata: [OutgoingMetadata.Entry(key: "idempotency-key", value: Text("key-\(key)"))])
            }
            #expect(server.project.idempotencyRefusals.value == 0)
        }
    }

    @Test func `What was done before is answered again when the keys are used up`() async throws {
        try await withServer(configure: { $0.limits.idempotencyRecordsPerSubjectMax = Self.limit }) { server in
            let client = try server.client(as: .app, of: "")
            _ = try IdentityClient(server).signUp("mallory@example.com")
            for key in 0..<Self.limit { try Self.signIn(client, "mallory@example.com", key: key) }
            for key in 0..<Self.limit { try Self.signIn(client, "mallory@example.com", key: key) }
        }
    }

    @Test func `A day later the keys are free again`() async throws {
        try await withServer(configure: { $0.limits.idempotencyRecordsPerSubjectMax = 1 }) { server in
            let client = try server.client(as: .app, of: "")
            _ = try IdentityClient(server).signUp("mallory@example.com")
            try Self.signIn(client, "mallory@example.com", key: 1)
            expectRefusal("TOO_MANY_IDEMPOTENCY_KEYS") { try Self.signIn(client, "mallory@example.com", key: 2) }
            server.clock.advance(by: .hours(24) + .seconds(1))
            await server.project.sweep()
            try Self.signIn(client, "mallory@example.com", key: 2)
        }
    }

    /// A stranger cannot use up a user's keys: only the user has a genuine ID token, and wrong passwords leave no
    /// record.
    @Test func `Failed attempts of a stranger use up nothing`() async throws {
        try await withServer(configure: { $0.limits.idempotencyRecordsPerSubjectMax = 1 }) { server in
            let client = try server.client(as: .app, of: "")
            _ = try IdentityClient(server).signUp("ada@example.com")
            for key in 0..<3 {
                expectRefusal("INVALID_LOGIN_CREDENTIALS") {
                    _ = try client.call(
                        "postern.v1.Accounts/SignInWithPassword",
                        AccountsSignInWithPasswordRequest(email: "ada@example.com", password: Secret("wrong horse")),
                        returning: AccountsSignInWithPasswordResponse.self,
                        metadata: [OutgoingMetadata.Entry(key: "idempotency-key", value: Text("key-\(key)"))])
                }
            }
            try Self.signIn(client, "ada@example.com", key: 9)
        }
    }

    @Test func `Changes by ID token count for the token's user, whichever token it is`() async throws {
        try await withServer(configure: { $0.limits.idempotencyRecordsPerSubjectMax = 2 }) { server in
            let client = try server.client(as: .app, of: "")
            let identity = try IdentityClient(server)
            let first = try #require(try identity.signUp("mallory@example.com").tokens)
            let second = try #require(try identity.signIn("mallory@example.com").tokens)
            func rename(_ tokens: TokenPair, key: Int) throws {
                _ = try client.call(
                    "postern.v1.Accounts/Update",
                    AccountsUpdateRequest(
                        idToken: tokens.idToken, updateMask: ProtobufFieldMask(paths: ["display_name"]),
                        displayName: Text("M \(key)")), returning: AccountsUpdateResponse.self,
                    metadata: [OutgoingMetadata.Entry(key: "idempotency-key", value: Text("key-\(key)"))])
            }
            try rename(first, key: 1)
            try rename(second, key: 2)
            expectRefusal("TOO_MANY_IDEMPOTENCY_KEYS") { try rename(first, key: 3) }
            expectRefusal("TOO_MANY_IDEMPOTENCY_KEYS") { try rename(second, key: 4) }
        }
    }
}
