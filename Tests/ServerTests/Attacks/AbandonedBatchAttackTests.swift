import Base
import Identity
import Messages
import Store
import TestSupport
import Testing
import Transport

@testable import Service

/// A client sends batches that decode to a dozen times their bytes, resets its connection, and comes again.
@Suite struct AbandonedBatchAttackTests {
    @Test(.timeLimit(.minutes(1)))
    func `Batches of a closed connection count as what they take, until they end without further turns`() async throws {
        try await withServer { server in
            try server.makeTenant("flood")
            let memory = server.instance.server.memory
            let connectionsOpen = server.instance.server.metrics.connectionsOpen
            let key = try server.client(as: .tenantAdmin, of: "flood").apiKey
            let client = try RawClient(port: server.port)
            client.apiKey = key
            let _: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest(tenantID: "flood"))
            let openBefore = connectionsOpen.value
            let writer = try WaitingImportAttackTests.HeldWriter(server.project.store)
            defer { writer.open() }
            let uids = (0..<1_000).map { Text("\($0)") }
            let request = UsersBatchDeleteRequest(tenantID: "flood", uids: uids)
            for _ in 0..<5 {
                try client.send(client.request("postern.v1.Users/BatchDelete", request, stream: client.nextStream()))
            }
            // Each uid has a place of 8 bytes, and a block of 48.
            let held = 5 * uids.count * (8 + 48)
            try await until("the batches are decoded: \(memory.byteCount)") { memory.byteCount >= held }
            client.reset()
            try await until("the connection is closed") { connectionsOpen.value < openBefore }
            #expect(memory.byteCount >= held)
            writer.open()
            try await until("the batches have ended: \(memory.byteCount)") { memory.byteCount < held / 5 }
        }
    }
}
