import Base
import Crypto
import Messages
import Reactor
import Rules
import Store
import TestSupport
import Tokens

@testable import Identity

/// A store with the domain's tables, and the resources of their owners; the clock stands still.
struct Fixture: Sendable {
    let resources: Resources
    let loops: EventLoopGroup
    let clock: ManualClock
    let masterKey = MasterKey.generate(random: .system)

    var store: Store { resources.store }
    var now: Timestamp { clock.clock.now() }

    /// A directory as a restarted process would make it.
    func tenantDirectory() -> TenantDirectory {
        TenantDirectory(resources: resources, masterKey: masterKey, loops: loops)
    }

    /// Puts a tenant's record there without its owner.
    func makeTenant(_ tenantID: Text = "acme") async throws {
        let record = StoredTenant(
            tenant: TenantSettings.defaults(tenantID: tenantID, now: now), secret: [UInt8](repeating: 5, count: 32))
        try await store.write { try $0.put(Tables.tenants, TenantPrefix(tenantID), record) }
    }

    /// The kinds and details of a tenant's events, oldest first.
    func events(of tenantID: Text) throws -> [String] {
        try store.read { transaction in
            var events: [String] = []
            try transaction.scanEvents(tenant: tenantID) { stored in
                let event = try EventRecord(decoding: stored.payload)
                events.append(event.detail.isEmpty ? "\(event.kind)" : "\(event.kind) \(event.detail)")
                return true
            }
            return events
        }
    }

    /// Every key and value of a table.
    func rows<Key, Record>(_ table: Table<Key, Record>) throws -> [[UInt8]: [UInt8]] {
        try store.read { transaction in
            var rows: [[UInt8]: [UInt8]] = [:]
            try transaction.scan(table) { row in
                rows[try row.key.bytes] = [UInt8](row.value)
                return true
            }
            return rows
        }
    }
}

/// Runs `body` with a fresh fixture, or with one over an existing directory.
func withFixture<Result>(
    at directory: String? = nil, limits: Limits = Limits(),
    open: (String) throws -> Store = { try openTestStore(at: $0, tables: Tables.all) },
    _ body: (Fixture) async throws -> Result
) async throws -> Result {
    guard let directory else {
        return try await withTemporaryDirectory { try await withFixture(at: $0, limits: limits, open: open, body) }
    }
    let clock = ManualClock()
    let store = try open(directory)
    let loops = EventLoopGroup(count: 2, name: "test")
    loops.start()
    defer { end(loops, store) }
    let resources = Resources(
        store: store, time: ServerClock(clock.machine), random: .system, limits: limits, log: .silent)
    return try await body(Fixture(resources: resources, loops: loops, clock: clock))
}

/// Closing may block a test's thread for a moment.
private func end(_ loops: EventLoopGroup, _ store: Store) {
    loops.stop()
    loops.join()
    store.close()
}

/// The reason of the failure that the asynchronous `body` throws, nil if it throws nothing: see `reason`.
func refusal(_ body: () async throws -> Void) async -> String? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? Failure)?.reason ?? "\(error)"
    }
}

extension CallerDirectory {
    /// Makes the directory of a project whose issuer does not matter.
    convenience init(resources: Resources) {
        self.init(resources: resources, signers: ServiceAccountSigners(), issuer: "https://issuer.test/test")
    }
}
