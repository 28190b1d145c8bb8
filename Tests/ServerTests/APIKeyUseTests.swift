import Base
import Identity
import Messages
import TestSupport
import Testing

/// When and from where an API key may be used: expiry, rotation, addresses.
@Suite struct APIKeyUseTests {
    private static func make(
        _ server: TestServer, expiresIn: Duration? = nil, addresses: [Text] = []
    ) throws -> (key: ApiKey, secret: Secret) {
        let expiresAt = expiresIn.map { (server.project.clock.now() + $0).microseconds } ?? 0
        let made: ProjectCreateApiKeyResponse = try server.connect().call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(
                role: .tenantAdmin, scope: Scope(tenants: .all(true)), expiresAtMicros: expiresAt,
                allowedAddresses: addresses))
        return (try #require(made.apiKey), made.secretKey)
    }

    private static func client(_ server: TestServer, _ secret: Secret) throws -> RawClient {
        let client = try server.connect(authenticated: false)
        client.apiKey = secret
        return client
    }

    @discardableResult
    private static func whoAmI(_ client: RawClient) throws -> ProjectWhoAmIResponse {
        try client.call("postern.v1.Project/WhoAmI", ProjectWhoAmIRequest())
    }

    private static func rotate(_ server: TestServer, _ id: Text, _ overlap: Int64) throws -> Secret {
        let made: ProjectRotateApiKeyResponse = try server.connect().call(
            "postern.v1.Project/RotateApiKey", ProjectRotateApiKeyRequest(apiKeyID: id, overlapSeconds: overlap))
        return made.secretKey
    }

    private static func update(
        _ server: TestServer, _ id: Text, _ path: Text, expiresAt: Int64 = 0, addresses: [Text] = [], until: Int64 = 0
    ) throws {
        let _: ProjectUpdateApiKeyResponse = try server.connect().call(
            "postern.v1.Project/UpdateApiKey",
            ProjectUpdateApiKeyRequest(
                apiKeyID: id, updateMask: ProtobufFieldMask(paths: [path]), expiresAtMicros: expiresAt,
                allowedAddresses: addresses, previousSecretUntilMicros: until))
    }

    private static func stream(
        _ server: TestServer, _ secret: Secret
    ) throws -> RawStream<TenantsWatchDenialsResponse> {
        try RawStream(
            server, "postern.v1.Tenants/WatchDenials", TenantsWatchDenialsRequest(afterSequence: -1), apiKey: secret)
    }

    @Test func `A key ends at its time, on open connections and in streams`() async throws {
        try await withServer { server in
            let (key, secret) = try Self.make(server, expiresIn: .hours(1))
            let client = try Self.client(server, secret)
            let who = try Self.whoAmI(client)
            #expect(who.caller == key.apiKeyID && who.role == .tenantAdmin)
            #expect(who.expiresAtMicros == key.expiresAtMicros)
            #expect(who.projectID == "test" && who.scope == Scope(tenants: .all(true)))
            let stream = try Self.stream(server, secret)
            server.clock.advance(by: .minutes(59))
            try Self.whoAmI(client)
            server.clock.advance(by: .minutes(1))
            expectRefusal("API_KEY_EXPIRED") { try Self.whoAmI(client) }
            expectRefusal("API_KEY_EXPIRED") { try Self.whoAmI(try Self.client(server, secret)) }
            // Any change of keys has the streams look at once; without one they look by themselves.
            _ = try Self.make(server)
            expectRefusal("API_KEY_EXPIRED") { _ = try stream.next() }
            try Self.update(
                server, key.apiKeyID, "expires_at_micros",
                expiresAt: (server.project.clock.now() + .hours(1)).microseconds)
            try Self.whoAmI(client)
            expectRefusal("INVALID_EXPIRY") {
                try Self.update(
                    server, key.apiKeyID, "expires_at_micros", expiresAt: server.project.clock.now().microseconds)
            }
        }
    }

    @Test func `A rotated key has a new secret, and the old one until its time`() async throws {
        try await withServer { server in
            let (key, first) = try Self.make(server)
            let second = try Self.rotate(server, key.apiKeyID, 3_600)
            let (old, new) = (try Self.client(server, first), try Self.client(server, second))
            let until = (server.project.clock.now() + .hours(1)).microseconds
            #expect(try Self.whoAmI(old).expiresAtMicros == until && Self.whoAmI(new).expiresAtMicros == 0)
            #expect(try Self.whoAmI(old).caller == Self.whoAmI(new).caller)
            server.clock.advance(by: .hours(1))
            expectRefusal("API_KEY_EXPIRED") { try Self.whoAmI(old) }
            try Self.whoAmI(new)
            // Without an overlap the previous secret ends at once, with its streams; older secrets are void too.
            let stream = try Self.stream(server, second)
            let third = try Self.rotate(server, key.apiKeyID, 0)
            expectRefusal("CALLER_UNAUTHENTICATED") { try Self.whoAmI(new) }
            expectRefusal("CALLER_UNAUTHENTICATED") { _ = try stream.next() }
            expectRefusal("CALLER_UNAUTHENTICATED") { try Self.whoAmI(old) }
            try Self.whoAmI(try Self.client(server, third))
            let fourth = try Self.rotate(server, key.apiKeyID, 60)
            _ = try Self.rotate(server, key.apiKeyID, 60)
            expectRefusal("CALLER_UNAUTHENTICATED") { try Self.whoAmI(try Self.client(server, third)) }
            try Self.whoAmI(try Self.client(server, fourth))
        }
    }

    @Test func `Only the old secret of a rotated key is ended, at once or sooner than it would`() async throws {
        try await withServer { server in
            let (key, first) = try Self.make(server)
            let second = try Self.rotate(server, key.apiKeyID, 3_600)
            let (old, new) = (try Self.client(server, first), try Self.client(server, second))
            let now = server.project.clock.now()
            let path: Text = "previous_secret_until_micros"
            for wrong in [-1, 1, now.microseconds, (now + .hours(1)).microseconds + 1, .max, .min] {
                expectRefusal("INVALID_EXPIRY") { try Self.update(server, key.apiKeyID, path, until: wrong) }
            }
            let sooner = (now + .minutes(1)).microseconds
            try Self.update(server, key.apiKeyID, path, until: sooner)
            #expect(try Self.whoAmI(old).expiresAtMicros == sooner)
            let stream = try Self.stream(server, first)
            try Self.update(server, key.apiKeyID, path, until: 0)
            expectRefusal("CALLER_UNAUTHENTICATED") { try Self.whoAmI(old) }
            expectRefusal("CALLER_UNAUTHENTICATED") { _ = try stream.next() }
            #expect(try Self.whoAmI(new).expiresAtMicros == 0)
            // The old secret does not come back, and there is no overlap left to end.
            expectRefusal("INVALID_EXPIRY") { try Self.update(server, key.apiKeyID, path, until: sooner) }
            try Self.update(server, key.apiKeyID, path, until: 0)
            expectRefusal("CALLER_UNAUTHENTICATED") { try Self.whoAmI(old) }
        }
    }

    @Test func `What cannot be rotated`() async throws {
        try await withServer { server in
            let (key, secret) = try Self.make(server)
            let days = Int64(30 * 86_400)
            _ = try Self.rotate(server, key.apiKeyID, days)
            for overlap in [-1, days + 1, .max, .min] {
                expectRefusal("INVALID_DURATION") { _ = try Self.rotate(server, key.apiKeyID, overlap) }
            }
            expectRefusal("API_KEY_NOT_FOUND") { _ = try Self.rotate(server, "nobody", 0) }
            expectRefusal("INSUFFICIENT_PERMISSION") {
                let _: ProjectRotateApiKeyResponse = try Self.client(server, secret).call(
                    "postern.v1.Project/RotateApiKey", ProjectRotateApiKeyRequest(apiKeyID: key.apiKeyID))
            }
            let _: ProjectRevokeApiKeyResponse = try server.connect().call(
                "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: key.apiKeyID))
            expectRefusal("API_KEY_REVOKED") { _ = try Self.rotate(server, key.apiKeyID, 0) }
        }
    }

    @Test func `A revoked key cannot be changed as if it lived`() async throws {
        try await withServer { server in
            let key = try Self.make(server).key
            let _: ProjectRevokeApiKeyResponse = try server.connect().call(
                "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: key.apiKeyID))
            let later = (server.project.clock.now() + .hours(1)).microseconds
            let paths: [Text] = [
                "expires_at_micros", "allowed_addresses", "display_name", "previous_secret_until_micros",
            ]
            for path in paths {
                expectRefusal("API_KEY_REVOKED") {
                    try Self.update(server, key.apiKeyID, path, expiresAt: later)
                }
            }
        }
    }

    @Test func `The old secret of a rotated key lives for thirty days at most`() async throws {
        try await withServer { server in
            let key = try Self.make(server).key
            let most: Int64 = 30 * 86_400
            for seconds in [0, most] { _ = try Self.rotate(server, key.apiKeyID, seconds) }
            for seconds in [-1, most + 1, .min, .max] {
                expectRefusal("INVALID_DURATION") { _ = try Self.rotate(server, key.apiKeyID, seconds) }
            }
        }
    }

    @Test func `A key is good from its addresses only, and a stream that was begun elsewhere ends`() async throws {
        try await withServer { server in
            let (key, secret) = try Self.make(server, addresses: ["192.0.2.0/24", "2001:db8::/32"])
            let client = try Self.client(server, secret)
            expectRefusal("ADDRESS_NOT_ALLOWED") { try Self.whoAmI(client) }
            let log = try RawStream<AuditWatchEventsResponse>(
                server, "postern.v1.Audit/WatchEvents",
                AuditWatchEventsRequest(afterSequence: -1, filter: EventFilter(kinds: [.callDenied])))
            #expect(try log.next()?.event?.detail == "postern.v1.Project/WhoAmI ADDRESS_NOT_ALLOWED")
            try Self.update(server, key.apiKeyID, "allowed_addresses", addresses: ["127.0.0.0/8"])
            try Self.whoAmI(client)
            let stream = try Self.stream(server, secret)
            try Self.whoAmI(stream.client)
            try Self.update(server, key.apiKeyID, "allowed_addresses", addresses: ["127.0.0.2"])
            expectRefusal("ADDRESS_NOT_ALLOWED") { _ = try stream.next() }
            expectRefusal("ADDRESS_NOT_ALLOWED") { try Self.whoAmI(client) }
            try Self.update(server, key.apiKeyID, "allowed_addresses")
            try Self.whoAmI(client)
            let many = (0..<32).map { Text("10.0.0.\($0)") }
            try Self.update(server, key.apiKeyID, "allowed_addresses", addresses: many)
            let wrong: [[Text]] = [
                many + ["10.0.1.1"], [""], ["10.0.0.1/33"], ["10.0.0.1/8"], ["localhost"], ["fe80::1%lo"],
                [Text(String(repeating: "1", count: 10_000))],
            ]
            for addresses in wrong {
                expectRefusal("INVALID_ADDRESS_RANGE") {
                    try Self.update(server, key.apiKeyID, "allowed_addresses", addresses: addresses)
                }
            }
        }
    }

    @Test func `One project-admin key that is good for ever and from everywhere is always left`() async throws {
        try await withServer { server in
            let who = try Self.whoAmI(try server.connect())
            let later = (server.project.clock.now() + .hours(1)).microseconds
            expectRefusal("LAST_ADMIN_KEY") {
                try Self.update(server, who.caller, "expires_at_micros", expiresAt: later)
            }
            expectRefusal("LAST_ADMIN_KEY") {
                try Self.update(server, who.caller, "allowed_addresses", addresses: ["192.0.2.1"])
            }
            let _: ProjectCreateApiKeyResponse = try server.connect().call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(
                    role: .projectAdmin, scope: Scope(tenants: .all(true)), expiresAtMicros: later))
            let _: ProjectCreateApiKeyResponse = try server.connect().call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(
                    role: .projectAdmin, scope: Scope(tenants: .all(true)), allowedAddresses: ["192.0.2.1"]))
            expectRefusal("LAST_ADMIN_KEY") {
                let _: ProjectRevokeApiKeyResponse = try server.connect().call(
                    "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: who.caller))
            }
        }
    }

    /// All connections look at their credentials again after each change of a key.
    @Test func `An update that changes nothing writes nothing`() async throws {
        try await withServer { server in
            let (key, _) = try Self.make(server, expiresIn: .hours(1))
            for _ in 0..<3 { try Self.update(server, key.apiKeyID, "allowed_addresses", addresses: ["127.0.0.1/32"]) }
            let events: AuditListEventsResponse = try server.connect().call(
                "postern.v1.Audit/ListEvents", AuditListEventsRequest(filter: EventFilter(kinds: [.apiKeyUpdated])))
            #expect(events.events.map(\.detail) == [Text("\(key.apiKeyID):allowed_addresses")])
        }
    }
}
