import Base
import Cluster
import Crypto
import Glibc
import Store
import Synchronization
import TestSupport
import Testing

/// A PostgreSQL of the test's own, and stores over a journal in it.
final class LocalEngine: Sendable {
    let port: UInt16
    let folder: String
    let masterKey = MasterKey.generate(random: .system)

    static let values = Table<[UInt8], [UInt8]>(
        id: 30, name: "values", owner: .nobody, purge: .noTenant, news: .ofRow)

    /// `standbyOf`: a running engine, which the new one follows.
    init(folder: String, standbyOf primary: LocalEngine? = nil) throws {
        self.folder = folder
        port = try freePort()
        if let primary { try run(["standby", primary.folder, folder]) }
        try start()
    }

    private static let script = {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        return "/\(root)/tools/postgres"
    }()

    private func run(_ arguments: [String]) throws {
        let child = try ChildProcess(Self.script, arguments, output: folder + ".out")
        try #require(child.wait(seconds: 90) == 0, "tools/postgres \(arguments)")
    }

    func start() throws { try run(["start", folder, "\(port)"]) }
    func stop() throws { try run(["stop", folder]) }
    func kill() throws { try run(["kill", folder]) }
    func promote() throws { try run(["promote", folder]) }
    func sql(_ statement: String) throws { try run(["sql", folder, statement]) }

    func address(_ schema: String = "postern", port: UInt16? = nil) throws -> JournalAddress {
        try JournalAddress("postgresql://postern@127.0.0.1:\(port ?? self.port)/postgres", schema: schema)
    }

    func journal(_ schema: String = "postern", port: UInt16? = nil, limits: Limits = Limits()) throws
        -> PostgreSQLJournal
    {
        PostgreSQLJournal(
            try address(schema, port: port), masterKey: masterKey, random: .system, limits: limits)
    }

    /// Makes a new cluster's first store in `directory`, closes it, and copies it.
    func beginCluster(
        _ schema: String = "postern", in directory: String, copies: [String] = [], limits: Limits = Limits()
    ) throws {
        let store = try openTestStore(at: directory, tables: [Self.values.declaration])
        defer { store.close() }
        try ClusterMembership.begin(
            with: store, at: address(schema), masterKey: masterKey, random: .system, limits: limits)
        for copy in copies {
            try store.backup(to: copy)
        }
    }
}

func withLocalEngine<Result>(_ body: (LocalEngine, String) async throws -> Result) async throws -> Result {
    try await withTemporaryDirectory { directory in
        // An ordinary user of the machine must be able to reach the engine's folder.
        chmod(directory, 0o711)
        let engine = try LocalEngine(folder: directory + "/engine")
        let result: Swift.Result<Result, any Error>
        do { result = .success(try await body(engine, directory)) } catch { result = .failure(error) }
        // As a crash would end it, because nobody needs its data any more.
        try? engine.kill()
        return try result.get()
    }
}

extension LocalEngine {
    /// The journal as a server with another master key would open it.
    static func stranger(to engine: LocalEngine) throws -> PostgreSQLJournal {
        PostgreSQLJournal(
            try engine.address("one"), masterKey: .generate(random: .system), random: .system, limits: Limits())
    }
}
