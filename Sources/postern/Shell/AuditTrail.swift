import Base
import Crypto
import JSON
import Messages

/// A fault of an export of events.
struct AuditFault: Error, Equatable {
    let message: String

    init(_ message: String) { self.message = message }
}

/// Follows exported events from the first line to the signed checkpoint at the end. Pure: the caller reads the lines.
///
/// An event's hash covers the tenant, its number, the hash of the event before it, and what was committed. The
/// checkpoint holds the hash of the last event, under the server's signature. So a file that passes holds exactly the
/// events that the server had, whoever kept the file.
struct AuditTrail {
    /// A position in a log: the number and the hash of an event.
    struct Place: Equatable {
        var sequence: Int64
        var hash: [UInt8]

        static let beginning = Place(sequence: 0, hash: [UInt8](repeating: 0, count: Digest.byteCount))
    }

    /// The end of an export that was checked before.
    struct Previous: Equatable {
        var projectID: Text
        var tenantID: Text
        var place: Place

        init(_ checkpoint: AuditCheckpoint) {
            (projectID, tenantID) = (checkpoint.projectID, checkpoint.tenantID)
            place = Place(sequence: checkpoint.sequence, hash: checkpoint.hash)
        }
    }

    /// The end of an export that was checked before; nil: there is none.
    private let previous: Previous?
    private let key: VerificationKey
    /// True if the beginning of the log may be in another export.
    private let isPart: Bool
    private var header: JSONValue?
    private(set) var tenantID: Text?
    private(set) var eventCount = 0
    private(set) var first: Int64?
    private(set) var checkpoint: AuditCheckpoint?
    private var reached: Place?
    /// The last event of the previous export was found again.
    private var isLinked = false

    init(key: VerificationKey, previous: Previous? = nil, isPart: Bool = false) {
        (self.key, self.previous, self.isPart) = (key, previous, isPart)
    }

    mutating func read(_ line: [UInt8]) throws(AuditFault) {
        guard checkpoint == nil else { throw AuditFault("something follows the checkpoint") }
        let json: JSONValue
        do throws(JSONError) {
            json = try JSONValue(parsing: line)
        } catch {
            throw AuditFault("a line is no JSON: \(error)")
        }
        guard let tenantID else { return try begin(json) }
        if json["signed"] != nil { return try end(json, tenantID) }
        try follow(try AuditLine.event(json), tenantID)
    }

    /// Called when the whole export was read.
    func finish() throws(AuditFault) -> AuditCheckpoint {
        guard let checkpoint else {
            let last = reached.map { "behind event \($0.sequence)" } ?? "at its beginning"
            throw AuditFault("the export is cut off \(last): it ends without a signed checkpoint")
        }
        return checkpoint
    }

    private mutating func begin(_ json: JSONValue) throws(AuditFault) {
        guard json["postern_audit"]?.integer == 1, let tenantID = json["tenant_id"]?.text else {
            throw AuditFault("this is no export of events: its first line is not {\"postern_audit\":1,…}")
        }
        if let previous, json["project_id"]?.text != previous.projectID || tenantID != previous.tenantID {
            throw AuditFault(
                "the previous export is the log of tenant \"\(previous.tenantID)\" of project \(previous.projectID), "
                    + "this one of tenant \"\(tenantID)\" of project \(json["project_id"]?.text ?? "")")
        }
        self.tenantID = tenantID
        header = json
    }

    // MARK: Events

    private mutating func follow(_ event: AuditEvent, _ tenantID: Text) throws(AuditFault) {
        let proof = event.proof ?? EventProof()
        let before = reached ?? Place(sequence: event.sequence - 1, hash: proof.previousHash)
        guard event.sequence == before.sequence + 1 else {
            throw AuditFault(
                event.sequence > before.sequence
                    ? "event \(before.sequence + 1) is missing: event \(event.sequence) stands in its place"
                    : "event \(event.sequence) stands where event \(before.sequence + 1) belongs")
        }
        guard proof.previousHash == before.hash else {
            throw AuditFault(
                "event \(before.sequence) was altered, or replaced: \(event.sequence) was written behind another one")
        }
        if first == nil { first = event.sequence }
        try compareWithPrevious(before)
        if event.sequence == 1, proof.previousHash != Place.beginning.hash {
            throw AuditFault("event 1 was altered, or replaced: nothing was written before it")
        }
        let hash = Self.hash(tenantID, event.sequence, proof)
        let place = Place(sequence: event.sequence, hash: hash)
        try compareWithPrevious(place)
        try Self.compare(event, proof)
        reached = place
        eventCount += 1
    }

    private mutating func compareWithPrevious(_ place: Place) throws(AuditFault) {
        guard let previous, previous.place.sequence == place.sequence else { return }
        isLinked = true
        if previous.place.hash != place.hash {
            throw AuditFault("event \(place.sequence) is not the one of the previous export: the log was rewritten")
        }
    }

    /// Checks that the readable fields are what was committed.
    private static func compare(_ event: AuditEvent, _ proof: EventProof) throws(AuditFault) {
        guard let record = try? EventRecord(decoding: proof.payload) else {
            throw AuditFault("event \(event.sequence) was altered: its payload is no event that this version knows")
        }
        let committed = AuditEvent(
            sequence: event.sequence, timeMicros: record.timeMicros, kind: record.kind, uid: record.uid,
            caller: record.actor, requestID: record.requestID, detail: record.detail, proof: proof,
            settingsChange: record.settingsChange)
        guard committed == event else {
            throw AuditFault("event \(event.sequence) was altered: its fields are not what its payload says")
        }
    }

    private static func hash(_ tenantID: Text, _ sequence: Int64, _ proof: EventProof) -> [UInt8] {
        var bytes = tenantID.bytes + [0]
        for number in [sequence, proof.globalSequence] {
            withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
        }
        return Digest.sha256(bytes + proof.previousHash + proof.payload)
    }

    // MARK: The end

    private mutating func end(_ json: JSONValue, _ tenantID: Text) throws(AuditFault) {
        let checkpoint = try AuditLine.checkpoint(json, key: key)
        guard checkpoint.tenantID == tenantID else {
            throw AuditFault("the checkpoint is for tenant \"\(checkpoint.tenantID)\", the events for \"\(tenantID)\"")
        }
        guard header == AuditLine.header(checkpoint) else {
            throw AuditFault("the first line was altered: it is not what the signed checkpoint says")
        }
        let end = Place(sequence: checkpoint.sequence, hash: checkpoint.hash)
        if let previous, previous.place.sequence > end.sequence {
            throw AuditFault(
                "the log ends with event \(end.sequence), and had \(previous.place.sequence) in the previous export")
        }
        try compareWithPrevious(end)
        let begins = previous?.place ?? Place(sequence: checkpoint.cutSequence, hash: [])
        let last = reached ?? (isPart ? end : begins)
        guard last.sequence == end.sequence else {
            throw AuditFault(
                last.sequence < end.sequence
                    ? "event \(last.sequence + 1) is missing: the log had \(end.sequence) as the server signed it"
                    : "event \(end.sequence + 1) was added: the log had \(end.sequence) as the server signed it")
        }
        guard reached == nil || last.hash == end.hash else {
            throw AuditFault("event \(end.sequence) was altered, or replaced: the server signed another one")
        }
        try checkBeginning(checkpoint)
        try checkLink(checkpoint)
        self.checkpoint = checkpoint
    }

    private func checkBeginning(_ checkpoint: AuditCheckpoint) throws(AuditFault) {
        // Events that the server deleted by age, or that another export holds, may be missing.
        let known = max(checkpoint.cutSequence, previous?.place.sequence ?? 0)
        guard let first, first > known + 1, !isPart else { return }
        throw AuditFault("event \(known + 1) is missing: the export begins with event \(first)")
    }

    /// A previous export proves something only if both exports have an event in common.
    private func checkLink(_ checkpoint: AuditCheckpoint) throws(AuditFault) {
        guard let previous else { return }
        guard isLinked else {
            throw AuditFault(
                "nothing links this export to the previous one, which ended with event \(previous.place.sequence): "
                    + "events up to \(checkpoint.cutSequence) were deleted by age in between")
        }
    }
}
