import Base
import Rules
import Store

extension Caller {
    /// The line in which the caller's work waits for a turn of its loop: that of the caller's tenant. Callers of no
    /// tenant share a line.
    var line: Text { tenantID ?? WriteMeter.project }
}

extension Optional<Caller> {
    /// Clients without a credential share a line, too.
    var line: Text { self?.line ?? "(strangers)" }
}
