public import Base
public import Crypto
public import Messages
public import Store

/// Signs where a log of events stands, for those who have the events and not the server's secrets.
///
/// The key follows from the master key: every node of a cluster has the same one, and a restored store signs with the
/// one that auditors know already.
public struct AuditSigner: Sendable {
    /// What stands in front of the checkpoint under the signature: nothing else that is signed begins like this.
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
