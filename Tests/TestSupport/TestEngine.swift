import Base
public import Cluster
import Crypto
import Glibc
import Identity
import Service
import Store
import Synchronization

/// The engine that tests keep a journal in: `POSTERN_TEST_JOURNAL` is its address, which `tools/test --cluster`
/// sets.
public enum TestEngine {
    public static var address: String? { getenv("POSTERN_TEST_JOURNAL").map { String(cString: $0) } }

    /// A node of a cluster asks its journal before it decides; the question is counted as a write.
    public static var questionWrites: UInt64 { address == nil ? 0 : 1 }
    /// How old a node of a cluster may say that its state is.
    public static var stalenessMax: Duration { address == nil ? .zero : .seconds(1) }

    private static let random = RandomSource.system
    /// The journals of the stores of this process's servers, for a server that starts again.
    private static let addresses = Mutex<[String: JournalAddress]>([:])

    /// A schema that nobody has used yet.
    public static func freshAddress(in url: String) throws -> JournalAddress {
        var address = try JournalAddress(url, schema: "t\(random.alphanumeric(20, lowercase: true))")
        address.acceptsForgetfulEngine = true
        return address
    }
}

extension Instance.Configuration {
    /// If the tests run over a journal, makes the server's store the first of a cluster of its own.
    mutating func useJournalIfAsked(masterKey: MasterKey) throws {
        guard let url = TestEngine.address, store.journal == nil else { return }
        let address = try joined(in: url, masterKey)
        store.journal = PostgreSQLJournal(address, masterKey: masterKey, random: .system, limits: limits)
        store.durability = .relaxed
        // The server's clock is the test's, but the engine's clock is not.
        limits.journal.clockDifferenceMax = .days(36_500)
        // Tests call without credentials as fast as they can.
        limits.journal.strangersQuestionsPerSecond = 1_000_000
    }

    /// The address of the store's journal, in a cluster that is made if the store belongs to none.
    private func joined(in url: String, _ masterKey: MasterKey) throws -> JournalAddress {
        var opened = store
        opened.leavesJournal = true
        let store = try Store(
            opened, authenticator: RecordMACs(masterKey: masterKey), eventHash: RecordMACs.eventHash,
            onFatal: { _ in })
        defer { store.close() }
        if try store.journalPlace() != nil, let known = TestEngine.address(of: opened.directory) { return known }
        let address = try TestEngine.freshAddress(in: url)
        try ClusterMembership.begin(with: store, at: address, masterKey: masterKey, random: .system, limits: limits)
        TestEngine.note(address, of: opened.directory)
        return address
    }
}

extension TestEngine {
    fileprivate static func address(of directory: String) -> JournalAddress? { addresses.withLock { $0[directory] } }
    fileprivate static func note(_ address: JournalAddress, of directory: String) {
        addresses.withLock { $0[directory] = address }
    }
}
