import Base
import Crypto
import JSON
import Messages

/// The lines of an export of events: a header, one line for each event, and the signed checkpoint.
///
///     {"postern_audit":1,"tenant_id":"acme","project_id":"shop"}
///     {"sequence":1,"time_micros":1769860800000000,"kind":"EVENT_KIND_TENANT_CREATED", …,"proof":{…}}
///     {"signed":{"checkpoint":"…","signature":"…","key_id":"…"},"checkpoint":{…}}
enum AuditLine {
    /// The prefix of the checkpoint's bytes in the signed message.
    static let signatureContext = [UInt8]("postern audit checkpoint 1".utf8) + [0]
    /// Above any line that the server writes: an event's row is limited by the size of a request.
    static let byteCountMax = 1 << 20

    static func header(_ checkpoint: AuditCheckpoint) -> JSONValue {
        [
            "postern_audit": 1, "tenant_id": .string(checkpoint.tenantID),
            "project_id": .string(checkpoint.projectID),
        ]
    }

    /// The event of a line, which must hold exactly the fields of an event.
    static func event(_ json: JSONValue) throws(AuditFault) -> AuditEvent {
        guard let sequence = json["sequence"]?.integer, sequence >= 1, sequence < Int64.max else {
            throw AuditFault("a line is neither an event nor a checkpoint")
        }
        func wrong() -> AuditFault { AuditFault("event \(sequence) was altered: its line is not as it was written") }
        guard let time = json["time_micros"]?.integer, let name = json["kind"], let uid = json["uid"]?.text,
            let caller = json["caller"]?.text, let requestID = json["request_id"]?.text,
            let detail = json["detail"]?.text, let proof = json["proof"],
            let kind = EventKind.allCases.first(where: { $0.json == name }),
            let global = proof["global_sequence"]?.integer,
            let previousHash = (proof["previous_hash"]?.text).flatMap({ Hex.decode($0.bytes) }),
            previousHash.count == Digest.byteCount,
            let payload = (proof["payload"]?.text).flatMap({ Hex.decode($0.bytes) })
        else { throw wrong() }
        // Taken from the payload. The comparison below checks that the line says the same.
        let change = (try? EventRecord(decoding: payload))?.settingsChange
        let event = AuditEvent(
            sequence: sequence, timeMicros: time, kind: kind, uid: uid, caller: caller, requestID: requestID,
            detail: detail,
            proof: EventProof(globalSequence: global, previousHash: previousHash, payload: payload),
            settingsChange: change)
        // The line must hold nothing else: an addition would pass for a part of the log.
        guard event.json == json else { throw wrong() }
        return event
    }

    /// The checkpoint of a line, if `key` signed it.
    static func checkpoint(_ json: JSONValue, key: VerificationKey) throws(AuditFault) -> AuditCheckpoint {
        guard let signed = json["signed"], let bytes = (signed["checkpoint"]?.text).flatMap({ Hex.decode($0.bytes) }),
            let signature = (signed["signature"]?.text).flatMap({ Hex.decode($0.bytes) })
        else { throw AuditFault("the checkpoint's line is not as it was written") }
        guard key.algorithm == .edDSA, key.verify(signature: signature, over: signatureContext + bytes) else {
            throw AuditFault("the checkpoint is not signed with the key \(key.keyID)")
        }
        guard let checkpoint = try? AuditCheckpoint(decoding: bytes), checkpoint.hash.count == Digest.byteCount,
            (0..<Int64.max).contains(checkpoint.sequence), (0...checkpoint.sequence).contains(checkpoint.cutSequence)
        else { throw AuditFault("the checkpoint is none that this version knows") }
        let whole = AuditSignCheckpointResponse(
            signed: SignedAuditCheckpoint(
                checkpoint: bytes, signature: signature, keyID: signed["key_id"]?.text ?? .empty),
            checkpoint: checkpoint)
        guard whole.json == json, whole.signed?.keyID == key.keyID else {
            throw AuditFault("the checkpoint's line is not as it was written")
        }
        return checkpoint
    }
}
