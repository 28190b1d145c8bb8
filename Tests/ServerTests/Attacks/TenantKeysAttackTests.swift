import Base
import Glibc
import Identity
import Messages
import TestSupport
import Testing
import Wire

@testable import Service

/// A tenant's admin makes keys without end: all of them together hold no more than one credential may.
@Suite struct TenantKeysAttackTests {
    private static let watch = "postern.v1.Audit/WatchEvents"

    private static func key(_ admin: RawClient, of tenantID: Text) throws -> Secret {
        let made: ProjectCreateApiKeyResponse = try admin.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .tenantID(tenantID))))
        return made.secretKey
    }

    private static func tenants(_ server: TestServer, _ admin: RawClient) throws -> (keys: [Secret], other: Secret) {
        for tenantID: Text in ["busy", "calm"] {
            let _: TenantsCreateResponse = try admin.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
        }
        return (try (0..<3).map { _ in try key(admin, of: "busy") }, try key(admin, of: "calm"))
    }

    private static func ask(_ client: RawClient, _ tenantID: Text) throws {
        let _: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest(tenantID: tenantID))
    }

    private static func connect(_ server: TestServer, _ key: Secret) throws -> RawClient {
        let client = try server.connect()
        client.apiKey = key
        return client
    }

    @Test func `Connections with all keys of a tenant leave places for others`() async throws {
        try await withServer(configure: {
            $0.limits.connectionsMax = 12
            $0.limits.connectionsPerCallerMax = 8
        }) { server in
            let admin = try server.connect()
            let (keys, other) = try Self.tenants(server, admin)
            var held: [RawClient] = []
            for number in 0..<8 {
                held.append(try Self.connect(server, keys[number % 2]))
                try Self.ask(held[number], "busy")
            }
            for key in keys {
                let client = try Self.connect(server, key)
                expectRefusal("TOO_MANY_CONNECTIONS") { try Self.ask(client, "busy") }
            }
            let calm = try Self.connect(server, other)
            try Self.ask(calm, "calm")
            try Self.ask(admin, "calm")
            // Whatever protocol they speak, clients that are gone close their connections.
            held = []
            var reason = "TOO_MANY_CONNECTIONS"
            try await until("the clients that are gone take no place") {
                let client = try Self.connect(server, keys[2])
                reason = failure { try Self.ask(client, "busy") }.reason
                return reason != "TOO_MANY_CONNECTIONS"
            }
            #expect(reason == "")
        }
    }

    @Test func `Streams with all keys of a tenant are bounded together`() async throws {
        try await withServer(configure: { $0.limits.streamsPerCallerMax = 2 }) { server in
            let admin = try server.connect()
            let (keys, other) = try Self.tenants(server, admin)
            func open(_ key: Secret, _ tenantID: Text) throws -> RawStream<AuditWatchEventsResponse> {
                try RawStream(
                    server, Self.watch, AuditWatchEventsRequest(tenantID: tenantID, afterSequence: -1), apiKey: key)
            }
            // The first message of each shows that it is open.
            let held = try keys.prefix(2).map { key in
                let stream = try open(key, "busy")
                _ = try stream.next()
                return stream
            }
            let third = try open(keys[2], "busy")
            #expect(throws: Failure.self) { try third.next() }
            _ = try open(other, "calm").next()
            withExtendedLifetime(held) {}
        }
    }

    @Test func `A stream does not keep a long request`() async throws {
        try await withServer { server in
            let most = server.project.limits.streamRequestBytesMax
            let filter = EventFilter(uid: Text(String(repeating: "x", count: most)))
            let stream = try RawStream<AuditWatchEventsResponse>(
                server, Self.watch, AuditWatchEventsRequest(afterSequence: -1, filter: filter))
            let refusal = failure { _ = try stream.next() }
            #expect(refusal.reason == "FRAME_TOO_LARGE")
        }
    }
}
