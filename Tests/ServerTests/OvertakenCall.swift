import Base
import Messages
import Store
import TestSupport

@testable import Identity

/// Makes a call whose transaction comes right after one that changes the default pool's settings, and returns the
/// call's failure. The writer's thread waits for the call's write, so the call was admitted before.
///
/// In a cluster the call is admitted behind the write that it waits for here, so that it has no earlier settings.
func failureOfOvertakenCall(
    _ server: TestServer, overtakenBy change: @escaping @Sendable (inout Messages.Tenant) -> Void,
    _ call: @escaping @Sendable (IdentityClient) throws -> Void
) async throws -> Failure {
    try await failureOfCall(
        server,
        overtakenByWrite: { transaction in
            var record = try transaction.reading.liveTenant(.empty)
            var tenant = record.tenant ?? Messages.Tenant()
            change(&tenant)
            record.tenant = tenant
            try transaction.put(Tables.tenants, TenantPrefix(.empty), record)
        }
    ) { try call(try IdentityClient(server)) }
}

/// The same for a call whose transaction comes right after another write.
func failureOfCall(
    _ server: TestServer, overtakenByWrite write: @escaping @Sendable (borrowing WriteTransaction) throws -> Void,
    _ call: @escaping @Sendable () throws -> Void
) async throws -> Failure {
    let store = server.project.store
    let isWriting = BlockingHookTests.Flag()
    let written = Task {
        try await store.write { transaction in
            isWriting.set()
            try blockUntil("the call's write waits") { try store.statistics().queuedWrites > 0 }
            try write(transaction)
        }
    }
    try await until("the other write has begun") { isWriting.isSet }
    let failures = try await atOnce(1) { _ in failure(call) }
    try await written.value
    return try failures[0].get()
}
