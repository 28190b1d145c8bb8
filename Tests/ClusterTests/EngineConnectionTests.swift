import Base
import TestSupport
import Testing

@testable import Cluster
@testable import Store

/// What a connection to the engine sets, and when it does not believe a result.
@Suite(.serialized) struct EngineConnectionTests {
    private func connect(_ engine: LocalEngine, timeout: Duration = .seconds(10)) throws -> PostgreSQLConnection {
        let address = try engine.address()
        let connection = try address.connect(timeout: timeout)
        try address.require(connection)
        return connection
    }

    private func setting(_ name: String, of connection: PostgreSQLConnection) throws -> String? {
        try connection.execute("SELECT current_setting('\(name)')").text(0, 0)
    }

    /// A commit whose wait for the standby was cancelled has a usual result and a warning.
    @Test func aWarningLeavesTheOutcomeOpen() async throws {
        try await withLocalEngine { engine, _ in
            // A role's settings may hide warnings.
            try engine.sql("ALTER ROLE postern SET client_min_messages = error")
            let connection = try connect(engine)
            try connection.execute("DO 'BEGIN RAISE NOTICE ''nothing''; END'")
            let error = #expect(throws: JournalEngineError.self) {
                try connection.execute("DO 'BEGIN RAISE WARNING ''only on the primary''; END'")
            }
            guard case .connectionLost(let reason) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(reason.contains("only on the primary"))
            // The next statement has a result of its own.
            #expect(try connection.execute("SELECT 1").rowCount == 1)
        }
    }

    @Test(arguments: [
        (severity: "WARNING", file: "syncrep.c", isOpen: true), (severity: "WARNING", file: "", isOpen: true),
        (severity: "NOTICE", file: "pl_exec.c", isOpen: false), (severity: "", file: "", isOpen: false),
        // An engine that has to be vacuumed soon says so with every write.
        (severity: "WARNING", file: "varsup.c", isOpen: false),
        (severity: "WARNING", file: "multixact.c", isOpen: false),
    ])
    func someWarningsSayNothingAboutTheStatement(severity: String, file: String, isOpen: Bool) {
        #expect(
            PostgreSQLWarning.leavesOutcomeOpen(severity: severity, file: file.isEmpty ? nil : file) == isOpen)
    }

    @Test func aReloadOfTheEngineDoesNotChangeWhatACommitWaitsFor() async throws {
        let settings = [
            (found: "off", used: "on"), (found: "local", used: "on"), (found: "on", used: "on"),
            (found: "remote_write", used: "remote_write"), (found: "remote_apply", used: "remote_apply"),
        ]
        try await withLocalEngine { engine, _ in
            for (number, (found, used)) in settings.enumerated() {
                try alter("synchronous_commit", to: found, in: engine)
                // New connections have the new setting a moment later.
                try blockUntil("the engine has its setting") {
                    try setting("synchronous_commit", of: engine.connection()) == found
                }
                let connection = try connect(engine)
                #expect(try setting("synchronous_commit", of: connection) == used)
                // The second setting shows that the connection has noticed the reload.
                try engine.sql("ALTER SYSTEM SET synchronous_commit = off")
                try alter("work_mem", to: "\(5 + number)MB", in: engine)
                try blockUntil("the connection has noticed the reload") {
                    try setting("work_mem", of: connection) == "\(5 + number)MB"
                }
                #expect(try setting("synchronous_commit", of: connection) == used)
            }
        }
    }

    private func alter(_ name: String, to value: String, in engine: LocalEngine) throws {
        try engine.sql("ALTER SYSTEM SET \(name) = '\(value)'")
        try engine.sql("SELECT pg_reload_conf()")
    }

    @Test func aWaitForAnotherTransactionEndsInTheEngine() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            let update = "UPDATE postern.postern_cluster SET format = format"
            let holder = try connect(engine)
            try holder.execute("BEGIN")
            try holder.execute(update)
            let waiting = try connect(engine, timeout: .seconds(4))
            let error = #expect(throws: JournalEngineError.self) { try waiting.execute(update) }
            #expect(String(describing: error).contains("55P03"))
            #expect(try engine.number("SELECT count(*) FROM pg_locks WHERE NOT granted") == 0)
            try holder.execute("ROLLBACK")
            try waiting.execute(update)
        }
    }

    /// As while the first try of an entry waits for the standby: the next try waits for the first one's row.
    @Test func anEntryWhosePlaceIsHeldIsTriedAgain() async throws {
        try await withLocalEngine { engine, directory in
            try engine.beginCluster(in: directory + "/0")
            var limits = Limits()
            (limits.journal.answerTimeout, limits.journal.patience) = (.seconds(2), .seconds(60))
            let store = try openTestStore(at: directory + "/0", tables: [LocalEngine.values.declaration]) {
                $0.journal = try? engine.journal(limits: limits)
                $0.durability = .relaxed
                $0.limits = limits
            }
            defer { close(store) }
            try await store.fill(1)
            let journal = "postern.postern_journal"
            let end = try engine.number("SELECT max(position) FROM \(journal)")
            let holder = try connect(engine)
            try holder.execute("BEGIN")
            try holder.execute(
                """
                INSERT INTO \(journal) (position, hash, previous_hash, batch_id, body)
                SELECT position + 1, hash, hash, batch_id, body FROM \(journal) WHERE position = \(end)
                """)
            let second = Task { try await store.fill(1, from: 1) }
            try blockUntil("the append gives up waiting for the lock") {
                store.journalStatus?.trouble.contains("55P03") == true
            }
            // The tries that were given up are gone from the engine.
            #expect(try engine.number("SELECT count(*) FROM pg_locks WHERE NOT granted") <= 1)
            try holder.execute("ROLLBACK")
            try await second.value
            #expect(try store.read { try $0.get(LocalEngine.values, [0, 1]) } != nil)
            #expect(try engine.number("SELECT max(position) FROM \(journal)") > end)
        }
    }
}
