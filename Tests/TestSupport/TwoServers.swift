public import Base
import Crypto
import Identity
import Journal
public import Service
import Store

/// Runs `body` against two servers that share their writes through a journal in memory. The journal tells no news: a
/// server that does not ask never learns what the other one wrote. `areTornApart`: each server has a journal of its
/// own, as if one of them had been given another engine.
public func withTwoServers<Result: Sendable>(
    areTornApart: Bool = false, _ body: (_ first: TestServer, _ second: TestServer) async throws -> Result
) async throws -> Result {
    try await withTwoNodes(areTornApart: areTornApart) { nodes in try await body(nodes.first, nodes.second) }
}

/// Two servers of a cluster, and what a test may do to them.
public struct TwoNodes: Sendable {
    public let first: TestServer
    public let second: TestServer
    /// Each server's way to the engine.
    public let journals: (first: MemoryJournal, second: MemoryJournal)
    public let rows: MemoryJournal.Rows
}

/// The same with more control. `secondClock`: the second server's clock, if it is not the first one's; `engineClock`:
/// the engine's clock, if the engine tells the time; `secondGate`: holds the second server up.
public func withTwoNodes<Result: Sendable>(
    areTornApart: Bool = false, clock: ManualClock = ManualClock(), secondClock: ManualClock? = nil,
    engineClock: Clock? = nil, secondGate: AppendGate? = nil, log: Log = .silent,
    configure: @escaping @Sendable (inout Instance.Configuration) -> Void = { _ in },
    _ body: (TwoNodes) async throws -> Result
) async throws -> Result {
    try await withTemporaryDirectory { directory in
        let masterKey = MasterKey.generate(random: .system)
        let paths = (directory + "/1", directory + "/2")
        let adminKey = try await withServer(directory: paths.0, clock: clock, masterKey: masterKey) { $0.adminKey }
        let beginning = JournalMark(position: 0, hash: JournalHash(SIMD4(1, 2, 3, 4)))
        try join(paths.0, copy: paths.1, masterKey, at: beginning)
        let rows = MemoryJournal.Rows(beginning: beginning, clock: engineClock)
        let otherRows = areTornApart ? MemoryJournal.Rows(beginning: beginning, clock: engineClock) : rows
        let gatedJournal = MemoryJournal(otherRows, tellsNews: false) { question in
            secondGate?.pass(question)
            return nil
        }
        let journals = (MemoryJournal(rows, tellsNews: false), gatedJournal)
        func joining(_ journal: MemoryJournal) -> @Sendable (inout Instance.Configuration) -> Void {
            { configuration in
                configuration.store.journal = journal
                configuration.store.durability = .relaxed
                configure(&configuration)
            }
        }
        return try await withServer(
            directory: paths.0, clock: clock, masterKey: masterKey, adminKey: adminKey,
            configure: joining(journals.0), log: log
        ) { first in
            try await withServer(
                directory: paths.1, clock: secondClock ?? clock, masterKey: masterKey, adminKey: adminKey,
                configure: joining(journals.1), log: log
            ) { second in
                try await body(TwoNodes(first: first, second: second, journals: journals, rows: rows))
            }
        }
    }
}

/// Makes the store a cluster's first store, and a copy of it the second.
private func join(
    _ directory: String, copy: String, _ masterKey: MasterKey, at beginning: JournalMark
) throws {
    let store = try Store(
        StoreConfiguration(directory: directory, tables: Tables.all), authenticator: RecordMACs(masterKey: masterKey),
        eventHash: RecordMACs.eventHash, onFatal: { _ in })
    defer { store.close() }
    let place = JournalPlace(clusterID: [UInt8](repeating: 9, count: JournalPlace.clusterIDByteCount), mark: beginning)
    try store.writeBlocking { try $0.setJournalPlace(Optional(place)) }
    try store.backup(to: copy)
}
