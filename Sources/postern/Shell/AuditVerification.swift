import Base
import Crypto
import Glibc
import JSON
import Messages

/// postern audit verify: reads an export line by line, whatever its size.
enum AuditVerification {
    static func run(_ session: Session) throws {
        let arguments = session.arguments
        guard let keyPath = arguments.value("public-key") else {
            throw CommandError.usage(
                "--public-key is missing",
                hint: "postern audit key FILE writes it; it must not come the way that the export came")
        }
        let key = try AuditKeyFile.read(keyPath)
        var previous: AuditTrail.Previous?
        if let path = arguments.value("previous") {
            previous = AuditTrail.Previous(try follow(path, AuditTrail(key: key, isPart: true)).checkpoint)
        }
        let path = arguments.operands[0]
        let (trail, checkpoint) = try follow(path, AuditTrail(key: key, previous: previous))
        if let tenant = arguments.text("tenant"), tenant != checkpoint.tenantID {
            throw CommandError("\(path): is the log of tenant \"\(checkpoint.tenantID)\"", exitCode: .damaged)
        }
        session.output.print(VerifiedExport(trail: trail, checkpoint: checkpoint, keyID: key.keyID))
        if let earlier = arguments.value("previous"), let previous {
            session.say(
                "it goes on from \(earlier), which ended with event \(previous.place.sequence): both are one log")
        }
    }

    private static func follow(
        _ path: String, _ start: AuditTrail
    ) throws(CommandError) -> (trail: AuditTrail, checkpoint: AuditCheckpoint) {
        let descriptor = try File.open(path)
        defer { close(descriptor) }
        var trail = start
        var lines = LineReader(descriptor: descriptor, name: path, byteCountMax: AuditLine.byteCountMax)
        do throws(AuditFault) {
            while let line = try lines.next() { try trail.read(line) }
            return (trail, try trail.finish())
        } catch {
            throw CommandError("\(path): \(error.message)", exitCode: .damaged)
        }
    }
}

/// The summary of a sound export.
private struct VerifiedExport: Record {
    static let columns = ["sound", "tenant_id", "first_sequence", "last_sequence", "signed_at_micros"]

    let trail: AuditTrail
    let checkpoint: AuditCheckpoint
    let keyID: Text

    var id: String { "sound" }

    var json: JSONValue {
        [
            "sound": true, "project_id": .string(checkpoint.projectID), "tenant_id": .string(checkpoint.tenantID),
            "events": .integer(Int64(trail.eventCount)), "first_sequence": .integer(trail.first ?? 0),
            "last_sequence": .integer(checkpoint.sequence), "deleted_by_age": .integer(checkpoint.cutSequence),
            "signed_at_micros": .integer(checkpoint.timeMicros), "key_id": .string(keyID),
        ]
    }
}

/// The lines of a file, one in memory at a time.
struct LineReader {
    private let descriptor: Int32
    private let name: String
    private let byteCountMax: Int
    private var waiting: [UInt8] = []
    private var place = 0
    private var isAtEnd = false

    init(descriptor: Int32, name: String, byteCountMax: Int) {
        (self.descriptor, self.name, self.byteCountMax) = (descriptor, name, byteCountMax)
    }

    /// The next line, without its line feed; nil at the end. A file may end without a line feed.
    mutating func next() throws(AuditFault) -> [UInt8]? {
        var searched = place
        while true {
            if let end = waiting[searched...].firstIndex(of: 0x0A) {
                defer { place = end + 1 }
                return Array(waiting[place..<end])
            }
            if isAtEnd {
                guard place < waiting.count else { return nil }
                defer { place = waiting.count }
                return Array(waiting[place...])
            }
            waiting.removeFirst(place)
            place = 0
            searched = waiting.count
            guard waiting.count <= byteCountMax else { throw AuditFault("a line is above \(byteCountMax) bytes") }
            do throws(CommandError) {
                guard let chunk = try File.readChunk(descriptor: descriptor, name: name) else {
                    isAtEnd = true
                    continue
                }
                waiting += chunk
            } catch {
                throw AuditFault(error.message)
            }
        }
    }
}
