import Base
import Crypto
import Store

@testable import Cluster

extension LocalEngine {
    /// The keeper of a node, which registers and looks at the journal many times in a second.
    func keeper(
        _ store: Store, _ directory: String, log: Log = Log(level: .error),
        onHoldingBack: @escaping @Sendable (Bool) -> Void = { _ in }, _ configure: (inout JournalLimits) -> Void
    ) throws -> ClusterKeeper {
        let node = try ClusterNode(of: directory, address: "127.0.0.1:1", version: "0", random: .system)
        var configuration = ClusterKeeper.Configuration(
            node, in: directory, at: try address(), masterKey: masterKey)
        configuration.limits = LocalEngine.limits
        configuration.limits.journal.registrationInterval = .milliseconds(50)
        configuration.limits.journal.trimInterval = .milliseconds(100)
        configure(&configuration.limits.journal)
        configuration.onHoldingBack = onHoldingBack
        return try ClusterKeeper(store, configuration, log: log)
    }
}
