import Base
import Synchronization

/// A step that turns the contents of an older version's store into what this version expects.
///
/// Steps run at start, in the order of their versions, each in a transaction of its own; a store that is new needs
/// none. A step that was interrupted runs again from its beginning.
public struct Migration: Sendable {
    /// The version of the store after the step (`Schema.version`).
    public let version: UInt32
    let run: @Sendable (borrowing WriteTransaction) throws -> Void

    public init(to version: UInt32, _ run: @escaping @Sendable (borrowing WriteTransaction) throws -> Void) {
        self.version = version
        self.run = run
    }

    /// The store's own steps.
    static let own = [Migration(to: 2) { try $0.countUsage() }, Migration(to: 4) { try $0.countUsage() }]

    fileprivate static let schemaKey = [UInt8]("schema".utf8)
    static let upgradedKey = [UInt8]("upgraded".utf8)
    /// There is a row under this key while the store needs no mending (`Store.mend`).
    static let mendedKey = [UInt8]("mended".utf8)
    /// Servers of versions 1 and 2 noted with this that they had counted usage. There were no other steps then.
    static let usageKey = [UInt8]("usage".utf8)
}

extension Store {
    /// Whether the store is from an older server and too full for a step of its upgrade. It is served all the same,
    /// because only deletions make room. The next start tries again.
    public var isUpgradePutOff: Bool { isUpgradePending.load(ordering: .relaxed) }

    /// Refuses a store that has rows and no version. Each store gets its version first. As a new store, it would get
    /// this version without the steps of its upgrade, or in the place of a newer one. The writer does not run yet.
    func requireVersion() throws(StoreError) {
        let isLost = try Self.throwingStoreErrors { try read { try $0.hasLostVersion() } }
        if isLost { throw .damaged(operation: "version of the store") }
    }

    /// Marks a new store with this version, refuses a store of a newer version, and upgrades a store of an older one.
    /// Reading the mark checks the master key as well.
    func upgrade() throws(StoreError) {
        let found = try change { transaction throws(StoreError) in
            if let found = try transaction.reading.version(Migration.schemaKey) { return found }
            try transaction.note(Schema.version, Migration.schemaKey)
            try transaction.note(Schema.version, Migration.upgradedKey)
            try transaction.noteMended()
            return Schema.version
        }
        guard found <= Schema.version else { throw .newerSchema(found: found, supported: Schema.version) }
        do {
            // The mark first: it needs less room, and without it an older server may open the store.
            if found < Schema.version {
                try change { transaction throws(StoreError) in
                    let upgraded = try transaction.reading.upgradedVersion(of: found)
                    try transaction.note(upgraded, Migration.upgradedKey)
                    try transaction.note(Schema.version, Migration.schemaKey)
                }
            }
            environment.storesPieces.store(true, ordering: .relaxed)
            try runMigrations()
        } catch .full {
            isUpgradePending.store(true, ordering: .relaxed)
        }
    }

    private func runMigrations() throws(StoreError) {
        let steps = Migration.own + environment.configuration.migrations
        let before = try change { transaction throws(StoreError) in
            try transaction.reading.upgradedVersion(of: Schema.version)
        }
        guard before < Schema.version else { return }
        for version in (before + 1)...Schema.version {
            do {
                try writeBlocking { transaction in
                    for step in steps where step.version == version { try step.run(transaction) }
                    try transaction.note(version, Migration.upgradedKey)
                }
            } catch let error as StoreError {
                throw error
            } catch {
                // If a step throws an error of its own, it found records that it cannot read.
                throw .corrupt(table: "what version \(version) upgrades")
            }
        }
    }
}

extension ReadTransaction {
    fileprivate func version(_ key: [UInt8]) throws(StoreError) -> UInt32? {
        try get(Schema.meta, key).map { UInt32(truncatingIfNeeded: $0.bigEndianNumber) }
    }

    /// Whether the store has rows and no version.
    func hasLostVersion() throws(StoreError) -> Bool {
        guard try version(Migration.schemaKey) == nil else { return false }
        for table in environment.tables.declarations where environment.tables.isOpen(table.id) {
            if try !isEmpty(tableID: table.id) { return true }
        }
        return false
    }

    /// The version that the store was upgraded to, if its mark is `schema`.
    fileprivate func upgradedVersion(of schema: UInt32) throws(StoreError) -> UInt32 {
        if let upgraded = try version(Migration.upgradedKey) { return upgraded }
        return try exists(Schema.meta, Migration.usageKey) ? schema : min(schema, 1)
    }

    /// Throws for a store of a newer server.
    func requireKnownSchema() throws(StoreError) {
        guard let found = try version(Migration.schemaKey), found > Schema.version else { return }
        throw .newerSchema(found: found, supported: Schema.version)
    }

    /// Whether the tenants' totals were counted.
    func hasUsage() throws(StoreError) -> Bool { try isUpgraded(to: 4) }

    /// Whether the steps of an upgrade up to `version` ran. They ran unless the store was too full for them
    /// (`Store.isUpgradePutOff`).
    public func isUpgraded(to version: UInt32) throws(StoreError) -> Bool {
        try upgradedVersion(of: Schema.version) >= version
    }
}

extension WriteTransaction {
    fileprivate func note(_ version: UInt32, _ key: [UInt8]) throws(StoreError) {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: version)
        try put(Schema.meta, key, bytes)
    }
}
