import Base
import Identity
import Rules
import Store

extension Optional<Caller> {
    /// The line in which a caller's work waits for a turn of its loop: that of the caller's tenant. Callers of no
    /// tenant share a line, and so do clients without a credential.
    var line: Text {
        guard let self else { return "(strangers)" }
        return self.tenantID ?? WriteMeter.project
    }
}
