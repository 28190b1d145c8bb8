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

    /// Checks and sets what must hold before any answer of this engine is believed.
    func require(_ connection: PostgreSQLConnection) throws(JournalEngineError) {
        try connection.execute("SET default_transaction_isolation = 'read committed'")
        let settings = try connection.execute(
            "SELECT current_setting('fsync', true), current_setting('synchronous_commit', true)")
        if settings.text(0, 0) == "off", !acceptsForgetfulEngine {
            throw .unusable("the engine runs with fsync=off: it forgets what it confirmed when its machine fails")
        }
        if ["off", "local"].contains(settings.text(0, 1) ?? "") {
            try connection.execute("SET synchronous_commit = on")
        }
    }
}
