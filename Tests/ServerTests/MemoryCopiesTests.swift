import Base
import Identity
import Messages
import Rules
import Signing
import Store
import TestSupport
import Testing

/// A copy of a row in memory follows the row, whoever changed it. Here the rows are written past the code that
/// usually changes them, as by another node whose batch was applied: only the commit itself tells of the change.
@Suite struct MemoryCopiesTests {
    private static let back: Text = "https://app.example/back"

    /// Each copy by the name it is registered under, and a proof that it follows. To add a copy, add a line.
    private static let proofs: [String: @Sendable (TestServer) async throws -> Void] = [
        "tenant settings": tenantSettings, "callers": callers, "token keys": tokenKeys, "cookie keys": cookieKeys,
        "providers": providers, "live tokens": liveTokens, "guesses": guesses,
    ]

    @Test func `There is a proof for every copy that a server keeps`() async throws {
        try await withServer { server in
            #expect(Set(server.project.store.copies.map { "\($0.name)" }) == Set(Self.proofs.keys))
        }
    }

    @Test(arguments: proofs.keys.sorted())
    func `A copy follows a row that somebody else changed`(_ name: String) async throws {
        let proof = try #require(Self.proofs[name])
        try await withServer { try await proof($0) }
    }

    private static func tenantSettings(_ server: TestServer) async throws {
        let client = try IdentityClient(server)
        _ = try client.signUp("ada@example.com")
        try await change(Tables.tenants, TenantPrefix(""), server) { $0.tenant?.allowPasswordSignup = false }
        expectRefusal("OPERATION_NOT_ALLOWED") { _ = try client.signUp("bob@example.com") }
        try await change(Tables.tenants, TenantPrefix(""), server) { $0.tenant?.allowPasswordSignup = true }
        _ = try client.signUp("bob@example.com")
        try await change(Tables.tenants, TenantPrefix(""), server) { $0.tenant?.disableAuth = true }
        expectRefusal("PROJECT_DISABLED") { _ = try client.signIn("bob@example.com") }
        try await change(Tables.tenants, TenantPrefix(""), server) { $0.deleted = true }
        expectRefusal("TENANT_NOT_FOUND") { _ = try client.signUp("eve@example.com") }
    }

    /// Rows that another server wrote. This copy counts them, and only time takes them out of the count.
    private static func guesses(_ server: TestServer) async throws {
        let client = try IdentityClient(server)
        _ = try client.signUp("ada@example.com")
        let account = server.project.guesses.keys.account(
            try #require(Email("ada@example.com", form: .toFind, limits: Limits())), tenantID: "")
        let guess = StoredGuess(outcome: .wrong, account: account, source: 7, tenant: 8, caller: 9, count: 100)
        let row = GuessRowKey(time: server.clock.clock.now(), serverID: 1, row: 1)
        try await server.project.store.write { try $0.put(Tables.guesses, row, StoredGuesses(guesses: [guess])) }
        expectRefusal("TOO_MANY_ATTEMPTS_TRY_LATER") { _ = try client.signIn("ada@example.com") }
    }

    private static func callers(_ server: TestServer) async throws {
        let admin = try server.connect()
        let made: ProjectCreateApiKeyResponse = try admin.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .all(true))))
        let client = try IdentityClient(server)
        client.client.apiKey = made.secretKey
        _ = try client.signUp("ada@example.com")
        let id = TextKey(made.apiKey?.apiKeyID ?? .empty)
        try await change(Tables.apiKeys, id, server) { $0.apiKey?.role = .verifier }
        expectRefusal("INSUFFICIENT_PERMISSION") { _ = try client.signUp("bob@example.com") }
        try await change(Tables.apiKeys, id, server) { $0.apiKey?.revokedAtMicros = 1 }
        expectRefusal("CALLER_UNAUTHENTICATED") { _ = try client.signUp("bob@example.com") }
    }

    /// The rows that a token needs, changed one after the other. Each verification that succeeds is remembered.
    private static func liveTokens(_ server: TestServer) async throws {
        let client = try IdentityClient(server)
        let made = try client.signUp("ada@example.com")
        let (uid, token) = (made.user?.uid ?? .empty, made.tokens?.idToken ?? .empty)
        func verified() throws -> TokensVerifyIdTokenResponse {
            try client.client.call("postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: token))
        }
        let sessionID = try Hex.decode(verified().sessionID.bytes) ?? []
        let (user, session) = (UserKey("", uid), SessionKey(sessionID))
        func expectVerified() throws { for _ in 0..<3 { #expect(try verified().uid == uid) } }
        try expectVerified()
        func changeUser(_ body: @escaping @Sendable (inout User) -> Void) async throws {
            try await change(Tables.users, user, server) { record in
                var user = (try? User(decoding: record.user)) ?? User()
                body(&user)
                record.user = user.encoded()
            }
        }
        try await changeUser { $0.disabled = true }
        expectRefusal("USER_DISABLED") { _ = try verified() }
        try await changeUser { $0.disabled = false }
        try expectVerified()
        try await changeUser { $0.tokensValidAfterMicros += 1 }
        expectRefusal("TOKEN_EXPIRED") { _ = try verified() }
        try await changeUser { $0.tokensValidAfterMicros -= 1 }
        try expectVerified()
        try await change(Tables.sessions, session, server) { $0.end = .signedOut }
        expectRefusal("TOKEN_EXPIRED") { _ = try verified() }
        try await change(Tables.sessions, session, server) { $0.end = .unspecified }
        try expectVerified()
        try await server.project.store.write { _ = try $0.delete(Tables.users, user) }
        expectRefusal("USER_NOT_FOUND") { _ = try verified() }
    }

    private static func tokenKeys(_ server: TestServer) async throws {
        let client = try IdentityClient(server)
        let token = try client.signUp("ada@example.com").tokens?.idToken ?? .empty
        // The second lookup is answered from memory.
        for _ in 0..<2 { _ = try client.lookup(token) }
        try await deleteKeys(server, .idToken)
        expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(token) }
    }

    private static func cookieKeys(_ server: TestServer) async throws {
        let client = try IdentityClient(server)
        let token = try client.signUp("ada@example.com").tokens?.idToken ?? .empty
        let made: TokensCreateSessionCookieResponse = try client.client.call(
            "postern.v1.Tokens/CreateSessionCookie", TokensCreateSessionCookieRequest(idToken: token))
        func verify() throws {
            let _: TokensVerifySessionCookieResponse = try client.client.call(
                "postern.v1.Tokens/VerifySessionCookie",
                TokensVerifySessionCookieRequest(sessionCookie: made.sessionCookie))
        }
        for _ in 0..<2 { try verify() }
        try await deleteKeys(server, .sessionCookie)
        expectRefusal("INVALID_SESSION_COOKIE") { try verify() }
    }

    private static func providers(_ server: TestServer) async throws {
        let provider = FakeIdentityProvider(clock: server.clock.clock)
        defer { provider.close() }
        let client = try IdentityClient(server)
        try client.setTenant(["allowed_continue_domains"]) { $0.allowedContinueDomains = ["app.example"] }
        let _: ProvidersCreateResponse = try client.client.call(
            "postern.v1.Providers/Create", ProvidersCreateRequest(provider: provider.provider("oidc.corp")))
        func ask() throws {
            let _: AccountsCreateAuthUriResponse = try client.client.call(
                "postern.v1.Accounts/CreateAuthUri",
                AccountsCreateAuthUriRequest(providerID: "oidc.corp", continueURI: back))
        }
        try ask()
        let key = TenantTextKey("", "oidc.corp")
        try await change(Tables.providers, key, server) { $0.provider?.enabled = false }
        expectRefusal("OPERATION_NOT_ALLOWED") { try ask() }
        try await change(Tables.providers, key, server) { $0.provider?.enabled = true }
        try ask()
        try await server.project.store.write { _ = try $0.delete(Tables.providers, key) }
        expectRefusal("OPERATION_NOT_ALLOWED") { try ask() }
    }

    // MARK: Streams

    @Test func `Those who follow refusals and revocations are told of rows that somebody else wrote`() async throws {
        try await withServer { server in
            let refusals = try RawStream<TenantsWatchDenialsResponse>(
                server, "postern.v1.Tenants/WatchDenials", TenantsWatchDenialsRequest(afterSequence: -1))
            let revocations = try RawStream<TokensWatchRevocationsResponse>(
                server, "postern.v1.Tokens/WatchRevocations",
                TokensWatchRevocationsRequest(anyTenant: true, heartbeatSeconds: 300))
            #expect(try revocations.next()?.snapshotReason == .noCursor)
            func write(denial sequence: Int64) async throws {
                let denial = Denial(
                    sequence: sequence, timeMicros: 1, toggle: .disabledUserSignup, operation: "elsewhere")
                try await server.project.store.write {
                    try $0.put(Tables.denials, SequenceKey("", denial.sequence), denial)
                }
            }
            for sequence in Int64(1)...3 {
                try await write(denial: sequence)
                #expect(try refusals.next()?.denial?.sequence == sequence)
            }
            let revocation = Revocation(kind: .user, uid: "ada", validAfterMicros: 1, timeMicros: 1)
            try await server.project.store.write { transaction in
                try transaction.put(Tables.revocations, SequenceKey("", 1), revocation)
                try transaction.put(Tables.revocationTenants, RevocationKey(1), Text.empty.bytes)
            }
            var told: [Text] = []
            // Passes over what the stream said before it came to the commit.
            while told.isEmpty, let message = try revocations.next() { told += message.revocations.map(\.uid) }
            #expect(told == ["ada"])
        }
    }

    // MARK: Rows

    /// Changes a row without telling anybody.
    private static func change<Key: StoreKey, Record: Message>(
        _ table: Table<Key, Record>, _ key: Key, _ server: TestServer,
        _ body: @escaping @Sendable (inout Record) -> Void
    ) async throws {
        try await server.project.store.write { transaction in
            var record = try #require(try transaction.get(table, key))
            body(&record)
            try transaction.put(table, key, record)
        }
    }

    private static func deleteKeys(_ server: TestServer, _ use: TokenUse) async throws {
        try await server.project.store.write { transaction in
            var ids: [TextKey] = []
            try transaction.scan(SigningTables.keys) { row in
                if try row.record.tokenUse == use { ids.append(try row.key) }
                return true
            }
            for id in ids { try transaction.delete(SigningTables.keys, id) }
        }
    }
}
