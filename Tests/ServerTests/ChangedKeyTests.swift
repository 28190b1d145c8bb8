import Base
import Glibc
import Messages
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Identity
@testable import Service

/// What a change of one credential costs the connections and streams of others, and that it takes effect at once for
/// its own.
@Suite struct ChangedKeyTests {
    private static func makeKey(_ admin: RawClient, _ role: Role = .tenantAdmin) throws -> (Secret, Text) {
        let made: ProjectCreateApiKeyResponse = try admin.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: role, scope: Scope(tenants: .tenantID("acme"))))
        return (made.secretKey, try #require(made.apiKey).apiKeyID)
    }

    private static func rename(_ admin: RawClient, _ id: Text, to name: Text) throws {
        let _: ProjectUpdateApiKeyResponse = try admin.call(
            "postern.v1.Project/UpdateApiKey",
            ProjectUpdateApiKeyRequest(
                apiKeyID: id, updateMask: ProtobufFieldMask(paths: ["display_name"]), displayName: name))
    }

    private static func getTenant(_ client: RawClient) throws {
        let _: TenantsGetResponse = try client.call("postern.v1.Tenants/Get", TenantsGetRequest(tenantID: "acme"))
    }

    /// Begins a stream, and returns its id.
    private static func watch(_ client: RawClient) throws -> UInt32 {
        _ = try client.hello()
        let stream = client.nextStream()
        try client.send(
            client.request(
                "postern.v1.Tenants/WatchDenials", TenantsWatchDenialsRequest(tenantID: "acme"), stream: stream,
                kind: .remoteClosed))
        return stream
    }

    private static func run(_ body: (TestServer, RawClient) throws -> Void) async throws {
        try await withServer { server in
            let admin = try server.connect()
            let _: TenantsCreateResponse = try admin.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            try body(server, admin)
        }
    }

    @Test func `A thousand changes of one key have no other connection and no stream look at its own`() async throws {
        try await Self.run { server, admin in
            let (_, changing) = try Self.makeKey(admin)
            let client = try server.connect(authenticated: false)
            client.apiKey = try Self.makeKey(admin).0
            _ = try Self.watch(client)
            try Self.getTenant(client)
            try Self.getTenant(admin)
            try blockUntil("both connections watch") { server.project.changes.watchCount.load(ordering: .relaxed) == 2 }
            let lookups = server.project.callers.lookups
            let before = lookups.value
            for number in 0..<1_000 {
                try Self.rename(admin, changing, to: Text("name \(number)"))
                if number % 100 == 0 { try Self.getTenant(client) }
            }
            // Now and then, everything looks at its credential for another reason: credentials expire without a commit.
            #expect(lookups.value - before < 50)
        }
    }

    @Test func `A key that is revoked is refused at once, and its streams end, whatever else changes`() async throws {
        try await Self.run { server, admin in
            let (_, changing) = try Self.makeKey(admin)
            for _ in 0..<20 {
                let (secret, id) = try Self.makeKey(admin)
                let client = try server.connect(authenticated: false)
                client.apiKey = secret
                let stream = try Self.watch(client)
                try Self.getTenant(client)
                for number in 0..<3 { try Self.rename(admin, changing, to: Text("\(id) \(number)")) }
                let _: ProjectRevokeApiKeyResponse = try admin.call(
                    "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: id))
                let refused = client.nextStream()
                try client.send(
                    client.request("postern.v1.Tenants/Get", TenantsGetRequest(tenantID: "acme"), stream: refused))
                var reasons: [UInt32: String] = [:]
                for _ in 0..<2 {
                    let frame = try client.readFrame()
                    let ended = failure { let _: TenantsGetResponse = try RawClient.response(frame) }
                    reasons[frame.header.stream] = ended.reason
                }
                #expect(
                    reasons == [stream: "CALLER_UNAUTHENTICATED", refused: "CALLER_UNAUTHENTICATED"])
                client.close()
            }
        }
    }

    @Test func `A key that another node revokes is refused here, and its streams end`() async throws {
        try await withTwoServers { first, second in
            let admin = try first.connect()
            let _: TenantsCreateResponse = try admin.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let (_, changing) = try Self.makeKey(admin)
            let (secret, id) = try Self.makeKey(admin)
            // A change on the second node: it then knows all changes of the first.
            let secondAdmin = try second.connect()
            try Self.rename(secondAdmin, changing, to: "one")
            let client = try second.connect(authenticated: false)
            client.apiKey = secret
            try Self.getTenant(client)
            let following = try second.connect(authenticated: false)
            following.apiKey = secret
            let stream = try Self.watch(following)
            let watchCount = { second.project.changes.watchCount.load(ordering: .relaxed) }
            try await until("both connections watch") { watchCount() == 2 }
            let _: ProjectRevokeApiKeyResponse = try admin.call(
                "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: id))
            try Self.rename(secondAdmin, changing, to: "two")
            let frame = try following.readFrame()
            let ended = failure { let _: TenantsGetResponse = try RawClient.response(frame) }
            #expect(frame.header.stream == stream && ended.reason == "CALLER_UNAUTHENTICATED")
            expectRefusal("CALLER_UNAUTHENTICATED") { try Self.getTenant(client) }
        }
    }
}
