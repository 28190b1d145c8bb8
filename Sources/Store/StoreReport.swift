import Base
import Glibc
import Messages

/// The faults of a store that was read as a whole. The server must be stopped; nothing is changed.
///
/// The report checks the file page by page, and each record's MAC. If the pages are sound, it then compares the records
/// with each other: the witness, the chains of events, the tenants' sums, and what `records` compares.
public struct StoreReport: Sendable {
    public private(set) var isSound = true
    /// Lines for the operator. They hold no names, addresses or values.
    public private(set) var lines: [String] = []

    /// The faults of the file alone: those of its pages, and of the MACs of its records. Throws if there is nothing to
    /// read: no file, or no readable meta page.
    public init(
        pagesOf configuration: StoreConfiguration, authenticator: any RecordAuthenticator
    ) throws(StoreError) {
        guard let file = try DataFile(path: DataFile.path(in: configuration.directory)) else { throw .missing }
        let byteCount = file.byteCount
        let walk = try PageWalk(file)
        lines.append("data.mdb: \(byteCount) bytes, transaction \(walk.meta.transactionID)")
        if !walk.meta.isNextToOther {
            walk.findings.add(
                "meta pages: transactions \(walk.meta.transactionID) and \(walk.meta.otherTransactionID) do not follow",
                at: "meta pages")
        }
        try readPages(walk, configuration, authenticator)
        add(walk.findings)
    }

    /// The same, and the long values that are not whole: a piece is a record of its own, and a sound one even if it is
    /// older than the others. The records are not compared with each other otherwise.
    public init(
        recordsOf configuration: StoreConfiguration, authenticator: any RecordAuthenticator,
        eventHash: @escaping EventHash
    ) throws {
        try self.init(pagesOf: configuration, authenticator: authenticator)
        guard isSound else { return }
        let environment = try Environment.readOnly(configuration, authenticator: authenticator, eventHash: eventHash)
        defer { environment.close() }
        var (findings, notes) = (Findings(), [String]())
        let reader = try StoreReader(environment: environment)
        try reader.read { try Self.joinPieces($0, &findings, &notes) }
        add(findings, notes)
    }

    /// All faults; throws as above. A backup has no witness beside it.
    public init(
        _ configuration: StoreConfiguration, authenticator: any RecordAuthenticator, eventHash: @escaping EventHash,
        isBackup: Bool = false, records: (borrowing ReadTransaction, inout Findings) throws -> Void
    ) throws(StoreError) {
        try self.init(pagesOf: configuration, authenticator: authenticator)
        guard isSound else {
            lines.append("the records were not compared with each other, because pages are damaged")
            return
        }
        guard
            let environment = try Environment.forInspection(
                configuration, authenticator: authenticator, eventHash: eventHash)
        else {
            lines.append("the records were not compared with each other: an older version made the store")
            return
        }
        defer { environment.close() }
        var (findings, notes) = (Findings(), [String]())
        do {
            let reader = try StoreReader(environment: environment)
            try reader.read { transaction in
                if try transaction.hasLostVersion() { findings.add("meta: no version of the store", at: "meta") }
                if !isBackup { try Self.compareWitness(transaction, &findings) }
                try Self.followEvents(transaction, &findings)
                try Self.addUp(transaction, &findings, &notes)
                try Self.joinPieces(transaction, &findings, &notes)
                try records(transaction, &findings)
            }
        } catch {
            findings.add("records: \(error)", at: "while they were compared")
        }
        add(findings, notes)
        let witness = isBackup ? "" : "witness, "
        if isSound { lines.append("sound: pages, MACs, \(witness)events, sums and indexes") }
    }

    private mutating func add(_ findings: Findings, _ notes: [String] = []) {
        if !findings.isEmpty { isSound = false }
        lines += notes + findings.lines
    }
}

// MARK: - The file

extension StoreReport {
    private mutating func readPages(
        _ walk: PageWalk, _ configuration: StoreConfiguration, _ authenticator: any RecordAuthenticator
    ) throws(StoreError) {
        let declared = Schema.tables(with: configuration.tables)
        let ids = Dictionary(uniqueKeysWithValues: declared.map { ($0.name.description, $0.id) })
        let (free, main) = try walk.roots()
        var freeCount: UInt64 = 0
        var newest: UInt64 = 0
        walk.walk(free) { row in freeCount += Self.claimFreePages(row, walk, &newest) }
        // Every transaction but a file's first frees pages. If a number is too high, it was damaged, and its meta page
        // may be the older one.
        if newest != walk.meta.transactionID, walk.meta.transactionID > 1 {
            walk.findings.add("free pages: not those of the newest transaction", at: "root")
        }
        let tables = walk.tables(main)
        let lost = LostTables(declared: declared, found: tables, authenticator: authenticator)
        for table in tables {
            guard let id = ids[table.name] else {
                lines.append("\(table.name): a table that this version does not know; only its pages are checked")
                walk.walk(table) { row in
                    guard let name = lost.table(of: row) else { return }
                    walk.findings.add("\(name): rows under another name", at: "page \(row.page)")
                }
                continue
            }
            walk.walk(table) { row in
                let isGenuine = RecordSeal.isGenuine(row.value, table: id, key: row.key, authenticator: authenticator)
                if !isGenuine { walk.findings.add("\(table.name): record without its MAC", at: "page \(row.page)") }
            }
            lines.append("\(table.name): \(table.rowCount) rows")
        }
        let unusedCount = walk.meta.lastPage + 1 - walk.claimedCount
        lines.append("free pages: \(freeCount), neither used nor free: \(unusedCount)")
    }

    /// Returns the count of the row's pages; 0 for a damaged row.
    private static func claimFreePages(_ row: PageWalk.Row, _ walk: PageWalk, _ newest: inout UInt64) -> UInt64 {
        var previous = UInt64.max
        let found = walk.forEachFreePage(in: row) { page in
            _ = walk.claim(page, for: "free pages", at: row.page)
            // LMDB takes the pages between two that lie as far apart in the list as in the file.
            if page >= previous { walk.findings.add("free pages: numbers out of order", at: "page \(row.page)") }
            previous = page
        }
        guard let count = found else { return 0 }
        newest = row.key.count == 8 ? row.key.loadUnaligned(as: UInt64.self) : 0
        if newest == 0 { walk.findings.add("free pages: no number of a transaction", at: "page \(row.page)") }
        return count
    }
}

// MARK: - The records

extension StoreReport {
    private static func compareWitness(
        _ transaction: borrowing ReadTransaction, _ findings: inout Findings
    ) throws {
        let environment = transaction.environment
        let storeID = try transaction.get(Schema.meta, Store.witnessKey)
        let found = try Witness.read(environment.configuration.directory, authenticator: environment.authenticator)
        let event = try transaction.newestEvent()
        if let rollback = Rollback(storeID: storeID, environment.metaAtStart, event: event, found) {
            findings.add("witness: \(rollback)", at: "witness")
        }
    }

    private static func followEvents(_ transaction: borrowing ReadTransaction, _ findings: inout Findings) throws {
        var tenants: [Text] = []
        try transaction.scan(Schema.eventHeads) { row in
            tenants.append(try row.key.tenant)
            return true
        }
        for (index, tenant) in tenants.enumerated() {
            if case .broken(let sequence) = try transaction.verifyEvents(tenant: tenant) {
                findings.add("events: broken chain", at: "tenant \(index) in order, event \(sequence)")
            }
        }
        try findEventsWithoutHead(transaction, Set(tenants), &findings)
    }

    private static func findEventsWithoutHead(
        _ transaction: borrowing ReadTransaction, _ tenants: Set<Text>, _ findings: inout Findings
    ) throws {
        var start = ScanStart.first
        while true {
            var found: EventKey?
            try transaction.scan(Schema.events, from: start, limit: 1) { row in
                found = try row.key
                return false
            }
            guard let first = found else { return }
            if !tenants.contains(first.tenant) {
                findings.add("events: log without its head", at: "event \(first.sequence)")
            }
            start = .behind(TenantPrefix(first.tenant))
        }
    }

    /// Reads the long values, and finds pieces that belong to none. The latter are no fault if the server knows of them
    /// (`Store.mend`).
    private static func joinPieces(
        _ transaction: borrowing ReadTransaction, _ findings: inout Findings, _ notes: inout [String]
    ) throws {
        var known = 0
        let tables = transaction.environment.tables
        for table in tables.declarations where table.id != Schema.pieces.id && tables.isOpen(table.id) {
            var damaged = 0
            known += try transaction.countPieces(of: table.id) { damaged += 1 }
            if damaged > 0 { findings.add("\(table.name): long values that are not whole", at: "\(damaged) rows") }
        }
        let isMissing = !transaction.environment.tables.isOpen(Schema.pieces.id)
        let stored = try isMissing ? 0 : transaction.count(Schema.pieces)
        guard stored > known else { return }
        if try transaction.isMended() {
            findings.add("pieces: pieces of no value", at: "\(stored - known) rows")
        } else {
            notes.append("pieces: \(stored - known) pieces of no value, which the server deletes when it runs")
        }
    }

    /// A wrong sum is no fault if the server knows that there may be some (`Store.mend`).
    private static func addUp(
        _ transaction: borrowing ReadTransaction, _ findings: inout Findings, _ notes: inout [String]
    ) throws {
        // A store of a server from before sums were counted has none.
        guard try transaction.hasUsage() else { return }
        let isMended = try transaction.isMended()
        var counted = try transaction.countedUsage()
        var (index, knownCount) = (0, 0)
        try transaction.scan(Schema.tenantUsage) { row in
            let stored = TenantUsage(try row.record)
            let sum = counted.removeValue(forKey: try row.key.tenant.bytes) ?? TenantUsage()
            // A server that was stopped, or copied, before its next sweep leaves an unknown sum.
            if sum != stored, !stored.isUnknown {
                if isMended {
                    findings.add("tenant_usage: sum differs from its rows", at: "tenant \(index) in order")
                } else {
                    knownCount += 1
                }
            }
            index += 1
            return true
        }
        if isMended, !counted.isEmpty {
            findings.add("tenant_usage: rows without a sum", at: "\(counted.count) tenants")
        } else {
            knownCount += counted.count
        }
        if knownCount > 0 {
            notes.append("tenant_usage: \(knownCount) sums differ from their rows; the server counts anew when it runs")
        }
    }
}
