public import Base
public import Crypto
public import Messages
public import Store

/// Signs the newest position of an event log, for auditors who have the events and not the server's secrets.
///
/// The key is derived from the master key: every node of a cluster has the same key, and a restored store signs with
/// the key that auditors know already.
public struct AuditSigner: Sendable {
    /// The bytes before the checkpoint in the signed message; no other signed message begins like this.
    public static let context = [UInt8]("postern audit checkpoint 1".utf8) + [0]

    private let key: SigningKey
    private let projectID: Text

    init(_ masterKey: MasterKey, projectID: Text) {
        self.key = masterKey.signingKey("audit")
        self.projectID = projectID
    }

    public var publicKey: VerificationKey { key.publicKey }

    /// The newest event of the tenant's log, signed.
    public func checkpoint(
        of tenantID: Text, in transaction: borrowing ReadTransaction, now: Timestamp
    ) throws -> (checkpoint: AuditCheckpoint, signed: SignedAuditCheckpoint) {
        let head = try transaction.eventHead(tenant: tenantID)
        let cut = try transaction.eventCheckpoint(tenant: tenantID)?.head.sequence ?? 0
        let checkpoint = AuditCheckpoint(
            projectID: projectID, tenantID: tenantID, sequence: Int64(clamping: head.sequence), hash: head.hash,
            timeMicros: now.microseconds, cutSequence: Int64(clamping: cut))
        let bytes = checkpoint.encoded()
        let signed = SignedAuditCheckpoint(
            checkpoint: bytes, signature: key.sign(Self.context + bytes), keyID: publicKey.keyID)
        return (checkpoint, signed)
    }
}
