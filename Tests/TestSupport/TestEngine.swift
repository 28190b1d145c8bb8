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

    private static let random = RandomSource.system
    /// Where the stores of this process' servers have their journals: for a server that starts again.
    private static let addresses = Mutex<[String: JournalAddress]>([:])

    /// A schema that nobody has used yet.
    public static func freshAddress(in url: String) throws -> JournalAddress {
        var address = try JournalAddress(url, schema: "t\(random.alphanumeric(20, lowercase: true))")
        address.acceptsForgetfulEngine = true
        return address
    }
}

extension Instance.Configuration {
    /// Where the tests run over a journal, makes the server's store the first of a cluster of its own.
    mutating func useJournalIfAsked(masterKey: MasterKey) throws {
        guard let url = TestEngine.address, store.journal == nil else { return }
        let address = try TestEngine.address(of: store.directory, in: url) { address in
            try beginCluster(at: address, masterKey)
        }
        store.journal = PostgreSQLJournal(address, masterKey: masterKey, random: .system, limits: limits)
        store.durability = .relaxed
    }

    private func beginCluster(at address: JournalAddress, _ masterKey: MasterKey) throws {
        let store = try Store(
            store, authenticator: RecordMACs(masterKey: masterKey), eventHash: RecordMACs.eventHash, onFatal: { _ in })
        defer { store.close() }
        try ClusterMembership.begin(
            with: store, at: address, masterKey: masterKey, random: .system, limits: limits)
    }
}

extension TestEngine {
    fileprivate static func address(
        of directory: String, in url: String, _ begin: (JournalAddress) throws -> Void
    ) throws -> JournalAddress {
        if let known = addresses.withLock({ $0[directory] }) { return known }
        let address = try freshAddress(in: url)
        try begin(address)
        addresses.withLock { $0[directory] = address }
        return address
    }
}
