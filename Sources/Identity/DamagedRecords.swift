import Base
import Store
import Synchronization

/// The damaged records that the sweep passes over, by tenant, user or table of the project. The log names each
/// of these once a day. Any thread.
final class DamagedRecords: Sendable {
    /// A tenant has an empty uid here.
    private let loggedAt = Mutex<[UserKey: Timestamp]>([:])
    private let log: Log
    private let steadyClock: Clock
    private static let quiet = Duration.days(1)
    /// Tenants and users that are remembered. The log does not name more of them in a day.
    private static let countMax = 1_000

    init(log: Log, steadyClock: Clock) {
        self.log = log
        self.steadyClock = steadyClock
    }

    /// The sweep leaves the tenant as it is, because a record of this table is damaged.
    func passOver(_ tenantID: Text, table: String) {
        guard isNews(UserKey(tenantID, .empty)) else { return }
        log.error(
            "the sweep passes over a tenant with a damaged record; posternd --verify-store tells more",
            ["tenant": .text(tenantID.string), "error": .text("\(StoreError.corrupt(table: table))")])
    }

    /// The sweep leaves the user as it is, because a record of this table is damaged.
    func passOver(_ key: UserKey, table: String) {
        guard isNews(key) else { return }
        log.error(
            "the sweep passes over a user with a damaged record; posternd --verify-store tells more",
            [
                "tenant": .text(key.tenant.string), "uid": .text(key.uid.string),
                "error": .text("\(StoreError.corrupt(table: table))"),
            ])
    }

    /// The sweep leaves a damaged row of a table as it is. The table's rows belong to no tenant.
    func passOver(rowOf table: String) {
        // No tenant has this id.
        guard isNews(UserKey("*", Text(table))) else { return }
        log.error(
            "the sweep passes over a damaged record of the project; posternd --verify-store tells more",
            ["error": .text("\(StoreError.corrupt(table: table))")])
    }

    private func isNews(_ key: UserKey) -> Bool {
        let now = steadyClock.now()
        return loggedAt.withLock { loggedAt in
            if let last = loggedAt[key], now < last + Self.quiet { return false }
            if loggedAt.count >= Self.countMax { loggedAt = loggedAt.filter { now < $0.value + Self.quiet } }
            guard loggedAt.count < Self.countMax else { return false }
            loggedAt[key] = now
            return true
        }
    }
}
