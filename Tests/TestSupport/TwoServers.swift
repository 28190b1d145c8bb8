import Base
import Crypto
import Identity
import Journal
import Service
import Store

/// Runs `body` against two servers that share their writes through a journal in memory, which tells no news: a server
/// that does not ask never learns what the other one wrote. `areTornApart`: each has a journal of its own, as if one
/// of them had been given another engine.
public func withTwoServers<Result: Sendable>(
    areTornApart: Bool = false, _ body: (_ first: TestServer, _ second: TestServer) async throws -> Result
) async throws -> Result {
    try await withTemporaryDirectory { directory in
        let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
        let paths = (directory + "/1", directory + "/2")
        let adminKey = try await withServer(directory: paths.0, clock: clock, masterKey: masterKey) { $0.adminKey }
        let beginning = JournalMark(position: 0, hash: JournalHash(SIMD4(1, 2, 3, 4)))
        try join(paths.0, copy: paths.1, masterKey, at: beginning)
        let rows = MemoryJournal.Rows(beginning: beginning)
        let otherRows = areTornApart ? MemoryJournal.Rows(beginning: beginning) : rows
        return try await withServer(
            directory: paths.0, clock: clock, masterKey: masterKey, adminKey: adminKey,
            configure: { $0.store.share(rows) }
        ) { first in
            try await withServer(
                directory: paths.1, clock: clock, masterKey: masterKey, adminKey: adminKey,
                configure: { $0.store.share(otherRows) }
            ) { second in try await body(first, second) }
        }
    }
}

extension StoreConfiguration {
    fileprivate mutating func share(_ rows: MemoryJournal.Rows) {
        journal = MemoryJournal(rows, tellsNews: false)
        durability = .relaxed
    }
}

/// Makes the store a cluster's first, and a copy of it the second.
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
