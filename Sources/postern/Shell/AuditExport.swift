import Base
import Crypto
import Glibc
import JSON
import Messages
import PosternClient

/// postern audit export: a log up to the checkpoint that the server signs. A complete file gets its final name; "-" is
/// standard output.
struct AuditExport {
    private let session: Session
    private let path: String
    private let after: Int64

    init(_ session: Session) throws {
        self.session = session
        self.path = session.arguments.operands[0]
        self.after = try session.arguments.integer("after", in: 0...Int64.max - 1) ?? 0
        guard path == "-" || !File.exists(path) else {
            throw CommandError.usage("\(path): exists already", hint: "an export is not overwritten: name another file")
        }
    }

    func run() async throws {
        guard path != "-" else { return try await writeOnOutput() }
        let count = try await File.create(path) { put in try await write(put) }
        session.say("\(path): \(count) events")
    }

    /// For a program that keeps the export. What it gets is whole only if this command ends well.
    private func writeOnOutput() async throws {
        let console = session.console
        let count = try await write {
            console.write($0)
            try console.checkOutput()
        }
        session.say("\(count) events")
    }

    private func write(_ put: ([UInt8]) throws -> Void) async throws -> Int {
        let client = AuditClient(channel: try session.channel())
        let tenantID = try session.tenantID()
        let end = try await client.signCheckpoint(
            AuditSignCheckpointRequest(tenantID: tenantID), options: session.callOptions())
        guard let checkpoint = end.checkpoint else { throw CommandError("the server signed no checkpoint") }
        guard after <= checkpoint.sequence else {
            throw CommandError.usage("--after \(after): the log ends with event \(checkpoint.sequence)")
        }
        try put(AuditLine.header(checkpoint).serialized() + [0x0A])
        var next = max(after, checkpoint.cutSequence) + 1
        var count = 0
        var request = AuditListEventsRequest(
            tenantID: tenantID, pageSize: 1_000, oldestFirst: true, fromSequence: next, includeProof: true)
        while next <= checkpoint.sequence {
            let page = try await client.listEvents(request, options: session.callOptions())
            for event in page.events where event.sequence <= checkpoint.sequence {
                guard event.sequence == next else {
                    throw CommandError(
                        "event \(next) was deleted meanwhile, because of its age", hint: "run the export again")
                }
                try put(event.json.serialized() + [0x0A])
                next += 1
                count += 1
            }
            guard next <= checkpoint.sequence, !page.nextPageToken.isEmpty else { break }
            request.pageToken = page.nextPageToken
        }
        guard next == checkpoint.sequence + 1 else {
            throw CommandError("the log ends before event \(next), and the server signed it", hint: "see store verify")
        }
        try put(end.json.serialized() + [0x0A])
        return count
    }
}

/// The public key of exports in a file, as PEM.
enum AuditKeyFile {
    static func text(_ key: AuditGetKeyResponse) -> [UInt8] {
        PEM.encode("PUBLIC KEY", Secret(key.publicKey)).withBytes { [UInt8]($0) }
    }

    static func write(_ key: AuditGetKeyResponse, to path: String) throws(CommandError) {
        let descriptor = try File.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
        defer { close(descriptor) }
        try File.write(text(key), to: descriptor, name: path)
    }

    static func read(_ path: String) throws(CommandError) -> VerificationKey {
        let text = try File.read(path)
        do throws(CryptoError) {
            let key = try VerificationKey(spki: PEM.decode("PUBLIC KEY", text))
            guard key.algorithm == .edDSA else { throw CryptoError.unsupported }
            return key
        } catch {
            throw .usage("\(path): is not a public key of exports", hint: "postern audit key FILE writes one")
        }
    }
}
