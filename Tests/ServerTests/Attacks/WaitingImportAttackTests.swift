import Base
import Identity
import Messages
import Store
import TestSupport
import Testing
import Transport

@testable import Service

/// The imports of one tenant wait for the store's writer, on many connections, with most of the memory that all
/// connections share.
@Suite struct WaitingImportAttackTests {
    private static let usersPerBatch = 60

    /// Keeps the store's writer from going on until `open` is called.
    struct HeldWriter {
        private let entered = Base.Semaphore()
        private let opened = Base.Semaphore()

        init(_ store: Store) throws {
            try store.write { [entered, opened] _ in
                entered.signal()
                opened.wait()
                // The body may run once more.
                opened.signal()
            } completion: { _ in
            }
            entered.wait()
        }

        func open() { opened.signal() }
    }

    private static let longName = Text(String(repeating: "x", count: 2_000))

    /// A batch that takes less than the 64 KiB of one read.
    private static func batch(_ number: Int) -> UsersImportRequest {
        let claims = [UInt8]("{\"a\":\"\(String(repeating: "x", count: 960))\"}".utf8)
        let users = (0..<usersPerBatch).map { ImportUser(uid: Text("u\(number)-\($0)"), customClaimsJSON: claims) }
        return UsersImportRequest(tenantID: "flood", users: users)
    }

    /// Connections that may send long frames, with one key of the tenant.
    private static func connections(_ count: Int, _ server: TestServer, of tenantID: Text) throws -> [RawClient] {
        let key = try server.client(as: .tenantAdmin, of: tenantID).apiKey
        return try (0..<count).map { _ in
            let client = try RawClient(port: server.port)
            client.apiKey = key
            let _: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest(tenantID: tenantID))
            return client
        }
    }

    /// Sends batches until memory is short. Returns the first one's stream.
    private static func fill(_ server: TestServer, _ clients: [RawClient]) async throws -> ImportTests.Stream {
        let memory = server.instance.server.memory
        let streams = server.instance.router.callerUse.streamsOpen
        var first: ImportTests.Stream?
        for (number, client) in clients.enumerated() where memory.pressure < .scarce {
            let stream = try ImportTests.Stream(client, batch(number))
            first = first ?? stream
            try await until("a batch is read") { streams.value > number || memory.pressure >= .scarce }
        }
        return try #require(first)
    }

    @Test(.timeLimit(.minutes(2)))
    func `Another tenant's long requests and pages go on meanwhile`() async throws {
        try await withServer(configure: {
            $0.threads = 2
            $0.limits.connectionMemoryMax = 8 << 20
            $0.limits.connectionMemoryShare = 16 * 1024
        }) { server in
            for tenantID in ["flood", "victim"] as [Text] { try server.makeTenant(tenantID) }
            let memory = server.instance.server.memory
            let (flood, victim) = (
                try Self.connections(110, server, of: "flood"), try Self.connections(4, server, of: "victim")
            )
            let writer = try HeldWriter(server.project.store)
            defer { writer.open() }
            let first = try await Self.fill(server, flood)
            #expect(memory.pressure == .scarce)
            // One tenant has half of the places. Its other batches are not decoded.
            let places = Limits().administration.importBatchesAtOnceMax
            try await until("others wait") { server.project.imports.places.waitingCount > places / 8 }
            for client in victim {
                // The request is read whole before it is refused.
                expectRefusal("TOO_MANY_ITEMS") {
                    let _: UsersBatchGetResponse = try client.call(
                        "postern.v1.Users/BatchGet",
                        UsersBatchGetRequest(
                            tenantID: "victim", uids: [Text](repeating: Self.longName, count: 101)))
                }
                let _: UsersListResponse = try client.call(
                    "postern.v1.Users/List", UsersListRequest(tenantID: "victim"))
            }
            writer.open()
            #expect(try first.answer().createdCount == Self.usersPerBatch)
            for client in flood { client.close() }
        }
    }
}
