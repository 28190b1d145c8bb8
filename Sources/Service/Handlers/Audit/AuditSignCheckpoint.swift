import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Audit/SignCheckpoint
enum AuditSignCheckpoint: FastMethod {
    static func handle(
        _ request: AuditSignCheckpointRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<AuditSignCheckpointResponse> {
        try call.caller?.requireEvents(of: call.tenantID)
        let (checkpoint, signed) = try call.auditSigner.checkpoint(of: call.tenantID, in: transaction, now: call.now)
        return .message(AuditSignCheckpointResponse(signed: signed, checkpoint: checkpoint))
    }
}
