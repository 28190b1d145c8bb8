import Base
import Store

extension JournalAddress {
    /// A connection to the engine of the cluster to which `seal` belongs.
    func connect(to seal: JournalSeal, timeout: Duration) throws(JournalEngineError) -> PostgreSQLConnection {
        let connection = try connect(timeout: timeout)
        try require(connection)
        try ClusterTables(connection, self).check(seal)
        return connection
    }

    /// Why the engine cannot be used now, for a log; nil if it can.
    @available(*, noasync, message: "blocks the thread")
    public func trouble(timeout: Duration) -> String? {
        do throws(JournalEngineError) {
            try require(try connect(timeout: timeout))
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// Checks and sets what must hold before any answer of this engine is believed.
    func require(_ connection: PostgreSQLConnection) throws(JournalEngineError) {
        try connection.execute("SET default_transaction_isolation = 'read committed'")
        // The role's settings may hide warnings, and only a warning tells of a cancelled wait for the standby.
        try connection.execute("SET client_min_messages = warning")
        try setLockTimeout(connection)
        let settings = try connection.execute(
            "SELECT current_setting('fsync', true), current_setting('synchronous_commit', true)")
        if settings.text(0, 0) == "off", !acceptsForgetfulEngine {
            throw .unusable("the engine runs with fsync=off: it forgets what it confirmed when its machine fails")
        }
        guard let found = settings.text(0, 1) else { return }
        // Also if the value is right: only a value that the session set itself survives ALTER SYSTEM and a reload.
        let wanted = ["off", "local"].contains(found) ? "on" : found
        try connection.execute(
            "SELECT set_config('synchronous_commit', $1::text, false)", parameters: [[UInt8](wanted.utf8)])
    }

    /// Bounds how long a statement waits for another transaction: half of the time after which the node gives up.
    ///
    /// While the standby stands still, a commit waits for it without end, also when its client has gone. Later tries of
    /// the same row wait for that commit, and the engine does not notice that their clients have gone either. Without
    /// this bound, each try leaves a connection behind, until the engine takes no more.
    ///
    /// `client_connection_check_interval` is no substitute. It ends no commit that waits for the standby, and it would
    /// end statements that take longer than a node waits, such as trimming on a slow disk, which then never succeed.
    private func setLockTimeout(_ connection: PostgreSQLConnection) throws(JournalEngineError) {
        try connection.execute("SET lock_timeout = \(connection.lockTimeoutMilliseconds)")
    }
}
