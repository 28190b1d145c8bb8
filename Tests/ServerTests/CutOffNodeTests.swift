import Base
import Identity
import Messages
import Synchronization
import TestSupport
import Testing
import Transport
import Wire

@testable import Service

/// A node that has been cut off from its engine for longer than its limit, and callers whose credentials may have been
/// revoked on another node meanwhile.
@Suite struct CutOffNodeTests {
    /// Methods that tell nothing of a tenant. Health needs no credential, and an operator needs the others.
    private static let answering: Set<String> = [
        "grpc.health.v1.Health/Check", "grpc.health.v1.Health/Watch", "postern.v1.Project/ServerInfo",
        "postern.v1.Project/GetClusterStatus",
    ]

    /// A node counts as cut off as soon as it does not ask the engine.
    private static let cutOffAtOnce: @Sendable (inout Instance.Configuration) -> Void = { configuration in
        configuration.limits.journal.patience = .milliseconds(50)
        configuration.limits.journal.staleAfter = .zero
    }

    private func makeKey(_ client: RawClient) throws -> ProjectCreateApiKeyResponse {
        try client.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: .projectAdmin, scope: Scope(tenants: .all(true))))
    }

    private func whoAmI(_ client: RawClient) throws {
        let _: ProjectWhoAmIResponse = try client.call("postern.v1.Project/WhoAmI", ProjectWhoAmIRequest())
    }

    private func list(_ client: RawClient) throws {
        let _: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest())
    }

    @Test func `Every method that needs a credential is refused, except two for the operator`() async throws {
        try await withTwoNodes(configure: Self.cutOffAtOnce) { nodes in
            nodes.journals.first.isAway.store(true, ordering: .relaxed)
            let methods = nodes.first.instance.router.registry.all.map(\.descriptor)
            let outcomes = Self.outcomes(of: methods, at: nodes.first)
            for method in methods {
                let expected = Self.answering.contains(method.fullName) ? "answered" : "NODE_BEHIND"
                #expect(outcomes[method.fullName] == expected, "\(method.fullName)")
            }
        }
    }

    /// What each method answers: its reason, or "answered". Changes wait for a second each, so many are asked at once.
    private static func outcomes(of methods: [MethodDescriptor], at server: TestServer) -> [String: String] {
        let outcomes = Mutex<[String: String]>([:])
        let threadCount = 24
        let threads = (0..<threadCount).map { number in
            OSThread(name: "caller-\(number)") {
                for index in stride(from: number, to: methods.count, by: threadCount) {
                    let method = methods[index]
                    let outcome: String
                    do {
                        let client = try server.connect()
                        _ = try client.hello()
                        outcome = try client.refusal(of: method, TenantsGetRequest())?.reason ?? "answered"
                    } catch {
                        outcome = "\(error)"
                    }
                    outcomes.withLock { $0[method.fullName] = outcome }
                }
            }
        }
        for thread in threads { thread.join() }
        return outcomes.withLock { $0 }
    }

    @Test func `A key that was revoked on another node reads nothing`() async throws {
        try await withTwoNodes(configure: Self.cutOffAtOnce) { nodes in
            let made = try makeKey(try nodes.first.connect())
            // A change begins at the journal's end, so the second node learns of the key.
            _ = try makeKey(try nodes.second.connect())
            nodes.journals.second.isAway.store(true, ordering: .relaxed)
            let keyID = try #require(made.apiKey).apiKeyID
            let _: ProjectRevokeApiKeyResponse = try nodes.first.connect().call(
                "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: keyID))
            let client = try nodes.second.connect(authenticated: false)
            client.apiKey = made.secretKey
            expectRefusal("NODE_BEHIND") { try whoAmI(client) }
            expectRefusal("NODE_BEHIND") { try list(client) }
        }
    }

    @Test func `The operator may want that reads go on`() async throws {
        let configure: @Sendable (inout Instance.Configuration) -> Void = { configuration in
            Self.cutOffAtOnce(&configuration)
            configuration.limits.journal.whenBehind = .serve
        }
        try await withTwoNodes(configure: configure) { nodes in
            let client = try nodes.first.connect()
            nodes.journals.first.isAway.store(true, ordering: .relaxed)
            try whoAmI(client)
            try list(client)
        }
    }

    @Test func `A call that asks for the newest state is answered when the engine is back`() async throws {
        try await withTwoNodes(configure: Self.cutOffAtOnce) { nodes in
            let client = try nodes.first.connect()
            expectRefusal("NODE_BEHIND") { try list(client) }
            let latest = [OutgoingMetadata.Entry(key: "x-postern-consistency", value: "latest")]
            let _: UsersListResponse = try client.call(
                "postern.v1.Users/List", UsersListRequest(), metadata: latest)
            let _: ProjectWhoAmIResponse = try client.call(
                "postern.v1.Project/WhoAmI", ProjectWhoAmIRequest(), metadata: latest)
        }
    }

    @Test func `A stream that was open before ends`() async throws {
        try await withTwoNodes(configure: Self.cutOffAtOnce) { nodes in
            let server = nodes.first
            let _: UsersCreateResponse = try server.connect().call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: "ada"))
            let stream = try RawStream<AuditWatchEventsResponse>(
                server, "postern.v1.Audit/WatchEvents", AuditWatchEventsRequest(afterSequence: -1))
            // The stream has begun when its first message comes.
            _ = try #require(try stream.next())
            nodes.journals.first.isAway.store(true, ordering: .relaxed)
            let router = server.instance.router
            await server.instance.server.visitConnections { router.checkCredentials(of: $0, nil) }
            expectRefusal("NODE_BEHIND") { while try stream.next() != nil {} }
        }
    }
}
