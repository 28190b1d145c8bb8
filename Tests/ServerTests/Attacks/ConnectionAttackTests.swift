import Base
import Glibc
import Messages
import TestSupport
import Testing
import Transport
import Wire

@testable import Service

/// Connections that show no credential, or too often the same: what they can hold, and for how long.
@Suite struct ConnectionAttackTests {
    private static let watch = "grpc.health.v1.Health/Watch"
    private static let stats = "postern.v1.Project/Stats"

    /// A connection without a credential that holds a stream.
    private static func stranger(_ server: TestServer) throws -> RawClient {
        let client = try server.connect(authenticated: false)
        try client.send(
            client.request(watch, GRPCHealthCheckRequest(), stream: client.nextStream(), kind: .remoteClosed))
        #expect(try client.readFrame().header.type == .data)
        return client
    }

    private static func ask(_ client: RawClient) throws {
        _ = try client.call(stats, ProjectStatsRequest(), returning: ProjectStatsResponse.self)
    }

    /// The failures in the responses that came before the server closed the connection.
    private static func lastWords(_ client: RawClient) throws -> [Failure] {
        try client.readUntilClosed().filter { $0.header.type == .response }.map { frame in
            failure { let _: EncodedMessage = try RawClient.response(frame) }
        }
    }

    // MARK: Places

    @Test func `Watchers on every place do not keep an admin out`() async throws {
        try await withServer(configure: { $0.limits.connectionsMax = 40 }) { server in
            let first = try server.connect()
            try Self.ask(first)
            let strangers = try (0..<39).map { _ in try Self.stranger(server) }
            for _ in 0..<10 {
                let admin = try server.connect()
                try Self.ask(admin)
                admin.close()
            }
            // The oldest stranger gave way, and was told to come back; connections with a credential never give way.
            #expect(try Self.lastWords(strangers[0]).map(\.code) == [.unavailable])
            try Self.ask(first)
            #expect(server.instance.server.metrics.connectionsDisplaced.value >= 1)
            #expect(server.instance.server.metrics.connectionsRefused.value == 0)
        }
    }

    @Test func `One address has so many places for strangers`() async throws {
        try await withServer(configure: { $0.limits.connectionsUnauthenticatedPerAddressMax = 5 }) { server in
            let strangers = try (0..<25).map { _ in try Self.stranger(server) }
            for stranger in strangers.prefix(20) {
                #expect(try Self.lastWords(stranger).map(\.reason) == ["CREDENTIAL_MISSING"])
            }
            #expect(server.instance.server.unauthenticatedCount == 5)
            let admin = try server.connect()
            try Self.ask(admin)
            #expect(server.instance.server.unauthenticatedCount <= 5)
        }
    }

    @Test func `A thousand strangers do not keep a caller out`() async throws {
        try await withServer(configure: {
            $0.limits.connectionsMax = 100
            $0.limits.connectionsUnauthenticatedPerAddressMax = 1_000
        }) { server in
            let known = try server.connect()
            try Self.ask(known)
            var strangers: [RawClient] = []
            for index in 0..<1_000 {
                strangers.append(try RawClient(port: server.port))
                if index % 50 == 0 {
                    try Self.ask(known)
                    try Self.ask(try server.connect())
                }
            }
            #expect(server.instance.server.metrics.connectionsRefused.value == 0)
        }
    }

    // MARK: Time

    @Test func `Whatever needs no credential ends in time`() async throws {
        let methods = PublishedMethod.all.filter { $0.role == 0 }
        #expect(methods.count >= 2)
        try await withServer(configure: { $0.limits.connectionUnauthenticatedMax = .seconds(1) }) { server in
            var calls: [(method: PublishedMethod, kind: StreamKind, client: RawClient)] = []
            for method in methods {
                for kind in [StreamKind.unary, .remoteClosed, .remoteOpen] {
                    for saysHello in [false, true] {
                        let client = try server.connect(authenticated: false)
                        if saysHello { _ = try client.hello() }
                        try client.send(
                            client.request(method.fullName, EncodedMessage(), stream: client.nextStream(), kind: kind))
                        calls.append((method, kind, client))
                    }
                }
            }
            // The server closes every connection. It answers the calls in flight, so that their callers come back.
            for (method, kind, client) in calls {
                let answers = try Self.lastWords(client)
                let isInFlight = kind == (method.isRequestStreaming ? .remoteOpen : .remoteClosed)
                if method.isResponseStreaming && isInFlight {
                    #expect(answers.map(\.code) == [.unavailable], "\(method.fullName) \(kind)")
                } else {
                    #expect(answers.count == 1, "\(method.fullName) \(kind)")
                }
            }
            #expect(server.instance.server.metrics.connectionsWithoutCredentialEnded.value > 0)
        }
    }

    @Test func `A revoked key leaves a connection without a credential`() async throws {
        try await withServer(configure: { $0.limits.connectionUnauthenticatedMax = .seconds(1) }) { server in
            let admin = try server.connect()
            let made: ProjectCreateApiKeyResponse = try admin.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .projectAdmin, scope: Scope(tenants: .all(true))))
            let thief = try server.connect()
            thief.apiKey = made.secretKey
            try Self.ask(thief)
            try thief.send(
                thief.request(
                    Self.watch, GRPCHealthCheckRequest(), stream: thief.nextStream(), kind: .remoteClosed))
            #expect(try thief.readFrame().header.type == .data)
            let _: ProjectRevokeApiKeyResponse = try admin.call(
                "postern.v1.Project/RevokeApiKey",
                ProjectRevokeApiKeyRequest(apiKeyID: try #require(made.apiKey).apiKeyID))
            #expect(try Self.lastWords(thief).map(\.code) == [.unavailable])
            try Self.ask(admin)
        }
    }

    // MARK: Memory

    @Test func `A stranger who does not read is not read from`() async throws {
        try await withServer { server in
            let (client, end) = try RawClient.pair(timeoutSeconds: 1)
            server.instance.server.adopt(end)
            // 4 MiB of requests whose answers the client does not read.
            #expect(throws: RawClient.RawError.timedOut) {
                for _ in 0..<40_000 {
                    let stream = client.nextStream()
                    try client.send(
                        client.request("grpc.health.v1.Health/Check", GRPCHealthCheckRequest(), stream: stream))
                }
            }
            #expect(server.instance.server.metrics.bytesReceived.value < 1 << 20)
        }
    }

    // MARK: One credential

    @Test func `Four thousand streams by one key are bounded`() async throws {
        try await withServer { server in
            let admin = try server.connect()
            let made: ProjectCreateApiKeyResponse = try admin.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .all(true))))
            var refused = 0
            var clients: [RawClient] = []
            for _ in 0..<16 {
                let client = try server.connect()
                client.apiKey = made.secretKey
                try Self.ask(admin)
                for _ in 0..<250 {
                    let stream = client.nextStream()
                    try client.send(
                        client.request(
                            "postern.v1.Tenants/WatchDenials", TenantsWatchDenialsRequest(), stream: stream,
                            kind: .remoteClosed))
                }
                refused += try Self.health(client).count { $0.reason == "TOO_MANY_STREAMS" }
                clients.append(client)
            }
            #expect(refused == 1_000)
            #expect(server.instance.router.callerUse.streamsOpen.value == 3_000)
            // Another credential has its own limit, and streams that have ended do not count.
            _ = try RawStream<TokensWatchRevocationsResponse>(
                server, "postern.v1.Tokens/WatchRevocations", TokensWatchRevocationsRequest()
            ).next()
            clients.removeAll()
            try await until("the streams have ended") { server.instance.router.callerUse.streamsOpen.value <= 1 }
        }
    }

    /// Calls Health.Check, and returns the failures that the server answered before that.
    private static func health(_ client: RawClient) throws -> [Failure] {
        let stream = client.nextStream()
        try client.send(client.request("grpc.health.v1.Health/Check", GRPCHealthCheckRequest(), stream: stream))
        var failures: [Failure] = []
        while true {
            let frame = try client.readFrame()
            if frame.header.stream == stream { return failures }
            failures.append(failure { let _: EncodedMessage = try RawClient.response(frame) })
        }
    }

    @Test func `Connections of one credential are bounded, and another has its own`() async throws {
        try await withServer(configure: { $0.limits.connectionsPerCallerMax = 3 }) { server in
            let admin = try server.connect()
            let made: ProjectCreateApiKeyResponse = try admin.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .projectAdmin, scope: Scope(tenants: .all(true))))
            func connect() throws -> RawClient {
                let client = try server.connect()
                client.apiKey = made.secretKey
                return client
            }
            var clients = try (0..<3).map { _ in try connect() }
            for client in clients { try Self.ask(client) }
            let fourth = try connect()
            expectRefusal("TOO_MANY_CONNECTIONS") { try Self.ask(fourth) }
            try Self.ask(admin)
            clients.removeLast()
            var reason = "TOO_MANY_CONNECTIONS"
            try await until("the third place is free") {
                reason = failure { try Self.ask(fourth) }.reason
                return reason != "TOO_MANY_CONNECTIONS"
            }
            #expect(reason == "")
        }
    }
}
