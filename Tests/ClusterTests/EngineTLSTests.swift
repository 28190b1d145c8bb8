import Base
import Crypto
import Glibc
import Store
import TestSupport
import Testing

@testable import Cluster

/// TLS between a node and its engine, as the journal's address wants it.
@Suite(.serialized) struct EngineTLSTests {
    private func address(_ engine: LocalEngine, _ options: String) throws -> JournalAddress {
        try JournalAddress("postgresql://postern@127.0.0.1:\(engine.port)/postgres?\(options)")
    }

    private func isEncrypted(_ address: JournalAddress) throws -> Bool {
        let connection = try address.connect(timeout: .seconds(10))
        let rows = try connection.execute("SELECT count(*) FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl")
        return rows.integer(0, 0) == 1
    }

    private func reason(_ address: JournalAddress) -> String? {
        do {
            _ = try address.connect(timeout: .seconds(10))
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// Installs the files as the engine's own: the engine reads its key only from a file that it owns.
    private func install(_ certificates: TestCertificates, in engine: LocalEngine) throws {
        let data = engine.folder + "/data"
        var owner = stat()
        try #require(stat(data, &owner) == 0)
        for (file, name) in [(certificates.certificateFile, "server.pem"), (certificates.keyFile, "server-key.pem")] {
            try PrivateFile.create("\(data)/\(name)", try #require(readFile(file)))
            try #require(chown("\(data)/\(name)", owner.st_uid, owner.st_gid) == 0)
        }
        for setting in ["ssl_cert_file = 'server.pem'", "ssl_key_file = 'server-key.pem'", "ssl = on"] {
            try engine.sql("ALTER SYSTEM SET \(setting)")
        }
        try engine.sql("SELECT pg_reload_conf()")
    }

    @Test func anEngineIsWhoTheAddressSaysOrNobodyTalksToIt() async throws {
        try await withLocalEngine { engine, directory in
            let (own, other) = ("\(directory)/own", "\(directory)/other")
            for folder in [own, other] { mkdir(folder, 0o700) }
            let certificates = try TestCertificates(in: own)
            let strangers = try TestCertificates(in: other)
            let verified = try address(engine, "sslmode=verify-full&sslrootcert=\(certificates.authorityFile)")
            #expect(try #require(reason(verified)).contains("does not support SSL"))
            #expect(try !isEncrypted(try address(engine, "sslmode=disable")))
            try install(certificates, in: engine)
            try blockUntil("the engine takes the connection") { reason(verified) == nil }
            #expect(try isEncrypted(verified))

            // A certificate of another authority, and one for another name.
            let untrusted = try address(engine, "sslmode=verify-full&sslrootcert=\(strangers.authorityFile)")
            #expect(try #require(reason(untrusted)).contains("certificate verify failed"))
            let misnamed = try JournalAddress(
                "postgresql://postern@db.example.com:\(engine.port)/postgres?hostaddr=127.0.0.1"
                    + "&sslmode=verify-full&sslrootcert=\(certificates.authorityFile)")
            #expect(try #require(reason(misnamed)).contains("db.example.com"))

            // A cluster over it.
            let store = try openTestStore(at: directory + "/0", tables: [LocalEngine.values.declaration])
            defer { close(store) }
            try begin(store, at: verified, engine)
            #expect(try engine.number("SELECT count(*) FROM postern.postern_cluster") == 1)
        }
    }

    private func begin(_ store: Store, at address: JournalAddress, _ engine: LocalEngine) throws {
        try ClusterMembership.begin(
            with: store, at: address, masterKey: engine.masterKey, random: .system, limits: Limits())
    }
}
