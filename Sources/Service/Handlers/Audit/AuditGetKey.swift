import Base
import Crypto
import Identity
import Messages
import Store

/// postern.v1.Audit/GetKey
enum AuditGetKey: FastMethod {
    static func handle(
        _ request: AuditGetKeyRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<AuditGetKeyResponse> {
        let key = call.auditSigner.publicKey
        return .message(AuditGetKeyResponse(keyID: key.keyID, publicKey: key.exportSPKI()))
    }
}
