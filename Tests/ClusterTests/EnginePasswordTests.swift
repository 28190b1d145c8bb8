import Base
import Glibc
import Messages
import TestSupport
import Testing

/// A cluster whose engine asks for a password, which is changed while the nodes run.
@Suite(.serialized) struct EnginePasswordTests {
    /// From now on, the engine asks for a password over TCP. Its local socket, which tools/postgres uses, stays open.
    private func askForPasswords(_ engine: LocalEngine) throws {
        let rules = "('local all all trust'), ('host all all 127.0.0.1/32 scram-sha-256')"
        // The engine writes the file itself, because the file is its user's.
        try engine.sql("COPY (VALUES \(rules)) TO '\(engine.folder)/data/pg_hba.conf'")
        try engine.sql("SELECT pg_reload_conf()")
        try blockUntil("the former password is refused") { (try? engine.connection()) == nil }
    }

    @Test func `A node reads the password anew for each connection`() async throws {
        try await withLocalEngine { engine, directory in
            let (data, password) = (directory + "/data", directory + "/password")
            try engine.sql("ALTER ROLE postern PASSWORD 'first'")
            try PrivateFile.replace(password, with: [UInt8]("first\n".utf8))
            try askForPasswords(engine)
            let flags = [
                "--data-directory", data, "--http-address", "off", "--signing-algorithm", "ES256",
                "--journal", "postgresql://postern@127.0.0.1:\(engine.port)/postgres",
                "--journal-password-file", password,
            ]
            let begin = try ChildProcess(
                ChildProcess.built("posternd"), flags + ["--cluster-init"], output: directory + "/begin")
            try #require(begin.wait(seconds: 60) == 0)
            let node = try NodeProcess(flags, port: try freePort(), directory: directory)
            _ = try node.createTenant("before", in: data)
            try engine.sql("ALTER ROLE postern PASSWORD 'second'")
            // The connections that are open go on; those after the restart need the new password.
            _ = try node.createTenant("open", in: data)
            try engine.stop()
            try engine.start()
            #expect(throws: Failure.self) { try node.createTenant("refused", in: data) }
            // While the file is replaced, there may be none.
            unlink(password)
            #expect(throws: Failure.self) { try node.createTenant("refused-too", in: data) }
            try PrivateFile.replace(password, with: [UInt8]("second\n".utf8))
            var number = 0
            try blockUntil("a change succeeds again") {
                number += 1
                return (try? node.createTenant(Text("after-\(number)"), in: data)) != nil
            }
            #expect(node.stop() == 0)
        }
    }
}
