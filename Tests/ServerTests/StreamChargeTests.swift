import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

@testable import Service

/// Each write of a stream has a meter: it waits in its tenant's line, and its caller is charged.
@Suite struct StreamChargeTests {
    /// The call of a backup, by nobody.
    private static func call(_ server: TestServer) throws -> StreamCall {
        let context = ConnectionContext()
        let gate = server.instance.router.gate
        let admission = try server.project.store.read { transaction in
            try gate.admission(
                requestedTenantID: nil, method: .projectBackup, caller: nil, context: context, in: transaction)
        }
        return StreamCall(admission, requestID: "test", peerAddress: "127.0.0.1")
    }

    private static func write(_ call: StreamCall) async throws {
        try await call.project.store.write { transaction in
            try transaction.appendEvent(
                .backupTaken, tenantID: .empty, origin: .server, detail: "test", now: Timestamp(microseconds: 0))
        }
    }

    @Test func `A stream that forgets to have a write charged fails its test`() async throws {
        do {
            try await withServer { server in
                let call = try Self.call(server)
                try await call.running { try await Self.write(call) }
            }
            Issue.record("nobody noticed")
        } catch is LateCharge {
        }
    }

    @Test func `A write that is charged at once is not found at the end`() async throws {
        try await withServer { server in
            let call = try Self.call(server)
            try await call.running { try await call.charging { try await Self.write(call) } }
            #expect(server.project.tenants.quotas.streamsChargedLate.value == 0)
        }
    }
}
