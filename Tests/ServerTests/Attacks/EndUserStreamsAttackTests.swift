import Base
import Messages
import Service
import TestSupport
import Testing
import Wire

/// The end users of an application are strangers who share its credential: their streams take no place of a back end's,
/// and none of them takes all places of the others.
@Suite struct EndUserStreamsAttackTests {
    private typealias Watch = RawStream<SessionsWatchAuthStateResponse>

    private static func key(_ admin: RawClient, _ role: Role) throws -> Secret {
        let made: ProjectCreateApiKeyResponse = try admin.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: role, scope: Scope(tenants: .tenantID("busy"))))
        return made.secretKey
    }

    private static func signUp(_ client: RawClient, _ email: Text) throws -> TokenPair {
        let made: AccountsSignUpResponse = try client.call(
            "postern.v1.Accounts/SignUp",
            AccountsSignUpRequest(tenantID: "busy", email: email, password: Secret("correct horse")))
        return try #require(made.tokens)
    }

    /// A further session of the user.
    private static func signIn(_ client: RawClient, _ email: Text) throws -> TokenPair {
        let made: AccountsSignInWithPasswordResponse = try client.call(
            "postern.v1.Accounts/SignInWithPassword",
            AccountsSignInWithPasswordRequest(tenantID: "busy", email: email, password: Secret("correct horse")))
        return try #require(made.tokens)
    }

    private static func watch(_ server: TestServer, _ tokens: TokenPair, apiKey: Secret? = nil) throws -> Watch {
        try Watch(
            server, "postern.v1.Sessions/WatchAuthState",
            SessionsWatchAuthStateRequest(tenantID: "busy", idToken: tokens.idToken), apiKey: apiKey)
    }

    /// A stream whose first message has come: it is open.
    private static func opened(_ server: TestServer, _ tokens: TokenPair, apiKey: Secret? = nil) throws -> Watch {
        let stream = try watch(server, tokens, apiKey: apiKey)
        let first = try stream.next()
        #expect(first?.change == .initial)
        return stream
    }

    @Test func `Users who listen leave the feed of revocations its place`() async throws {
        try await withServer(configure: { $0.limits.streamsPerCallerMax = 2 }) { server in
            let admin = try server.connect()
            let _: TenantsCreateResponse = try admin.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "busy"))
            let (app, verifier) = (try Self.key(admin, .app), try Self.key(admin, .verifier))
            let users = try (0..<3).map { try Self.signUp(admin, Text("user\($0)@example.com")) }
            let held = try users.prefix(2).map { try Self.opened(server, $0, apiKey: app) }
            let third = try Self.watch(server, users[2], apiKey: app)
            expectRefusal("TOO_MANY_STREAMS") { _ = try third.next() }
            var feeds: [RawStream<TokensWatchRevocationsResponse>] = []
            for _ in 0..<2 {
                let feed = try RawStream<TokensWatchRevocationsResponse>(
                    server, "postern.v1.Tokens/WatchRevocations", TokensWatchRevocationsRequest(tenantID: "busy"),
                    apiKey: verifier)
                let first = try feed.next()
                #expect(first?.snapshotReason != .unspecified)
                feeds.append(feed)
            }
            // Back ends have the same number for themselves, and no more.
            let further = try RawStream<TokensWatchRevocationsResponse>(
                server, "postern.v1.Tokens/WatchRevocations", TokensWatchRevocationsRequest(tenantID: "busy"),
                apiKey: verifier)
            expectRefusal("TOO_MANY_STREAMS") { _ = try further.next() }
            withExtendedLifetime((held, feeds)) {}
        }
    }

    @Test func `A session and a user watch themselves with a few streams only`() async throws {
        try await withServer(configure: {
            $0.limits.administration.watchesPerSessionMax = 2
            $0.limits.administration.watchesPerUserMax = 3
        }) { server in
            let admin = try server.connect()
            let _: TenantsCreateResponse = try admin.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "busy"))
            let ada = try Self.signUp(admin, "ada@example.com")
            let adaElsewhere = try Self.signIn(admin, "ada@example.com")
            let bob = try Self.signUp(admin, "bob@example.com")
            var held = try (0..<2).map { _ in try Self.opened(server, ada) }
            let ofSession = try Self.watch(server, ada)
            expectRefusal("TOO_MANY_STREAMS") { _ = try ofSession.next() }
            held.append(try Self.opened(server, adaElsewhere))
            let ofUser = try Self.watch(server, adaElsewhere)
            expectRefusal("TOO_MANY_STREAMS") { _ = try ofUser.next() }
            held.append(try Self.opened(server, bob))
            // Streams that have ended, and those that were refused, do not count.
            held.removeFirst(2)
            var again: Watch?
            try await until("a stream of the session has its place again") {
                let stream = try Self.watch(server, ada)
                let reason = failure { _ = try stream.next() }.reason
                again = reason.isEmpty ? stream : nil
                return again != nil
            }
            withExtendedLifetime((held, again)) {}
        }
    }
}
