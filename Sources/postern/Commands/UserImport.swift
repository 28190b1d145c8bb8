import Base
import Glibc
import JSON
import Messages
import PosternClient

/// postern user import: a file of users, in batches, every row accounted for.
enum UserImport {
    static let command = Command(
        path: ["user", "import"], methods: ["Users/Import"],
        summary: "Brings users in from a file of user export or of Firebase, with their passwords.",
        example: "-t acme user import users.json --hash-algo scrypt --hash-key-file key --rounds 8 --mem-cost 14",
        operands: [.required("file|-")],
        flags: [
            Flag("format", "FORMAT", "ndjson, firebase-json or firebase-csv; default: by the file's name"),
            Flag(
                "hash-algo", "ALGO",
                "how the passwords are hashed (scrypt is Firebase's own): "
                    + HashAlgorithm.names.joined(separator: ", ")),
            Flag("on-conflict", "fail|skip|replace", "what to do with a uid that exists (default fail)"),
            Flag(
                "rejects", "FILE", "write rejected rows there, one JSON object per line; with --checkpoint it goes on"),
            Flag("checkpoint", "FILE", "note there what is settled; the same command goes on behind it"),
        ] + HashAlgorithm.parameterFlags, isValidatable: true
    ) { session in
        let spec = try session.arguments.value("hash-algo").map { try HashAlgorithm(named: $0).spec(session) }
        let conflict: ImportConflict? = try session.arguments.choice(
            "on-conflict", of: [("fail", .fail), ("skip", .skip), ("replace", .replace)])
        let byteCount = try session.arguments.integer("dk-len", in: 1...1_024)
        guard byteCount == nil || session.arguments.value("hash-algo")?.lowercased() == "standard_scrypt" else {
            throw CommandError.usage("--dk-len goes with --hash-algo standard_scrypt")
        }
        let path = session.arguments.operands[0]
        let source = path == "-" ? STDIN_FILENO : try File.open(path)
        let isTrial = session.isValidatingOnly
        let format = try format(session, path: path)
        let checkpoint = try await checkpoint(session, of: source, format)
        let rejects = try session.arguments.value("rejects").map { path throws(CommandError) in
            try RejectsFile(path, settledRowCount: checkpoint?.settled.rowCount ?? 0, users: source)
        }
        if let continuation = checkpoint?.continuation { session.console.say(continuation) }
        let first = UsersImportRequest(
            tenantID: try checkpoint?.tenantID ?? session.tenantID(), spec: spec, onConflict: conflict ?? .fail,
            validateOnly: isTrial)
        let stream = try await UsersClient(channel: session.channel()).import(options: session.streamOptions)
        var run = ImportRun(
            stream: stream, first: first, session: session, rejects: rejects, checkpoint: checkpoint,
            source: source, hashByteCount: byteCount.map { Int($0) })
        try await run.importAll(format.source { try File.readChunk(descriptor: source, name: path) })
    }

    /// Only a checkpoint has to know whose tenant the key is of, and the history of the server's store.
    private static func checkpoint(
        _ session: Session, of source: Int32, _ format: UserFileFormat
    ) async throws -> ImportCheckpoint? {
        guard let path = session.arguments.value("checkpoint") else { return nil }
        guard !session.isValidatingOnly else { throw CommandError.usage("--dry-run needs no --checkpoint") }
        try File.checkName(path)
        let tenant = try await ServedTenant(withHistoryOf: session)
        return try ImportCheckpoint(path, of: source, to: .init(tenant: tenant, format: format))
    }

    /// Without --format, a pipe, or a file whose name does not tell its format, is read as Firebase's JSON, as ever.
    static func format(_ session: Session, path: String) throws(CommandError) -> UserFileFormat {
        guard let named = session.arguments.value("format") else {
            return (try? .find(nil, path: path)) ?? .firebaseJSON
        }
        return try .find(named, path: path)
    }
}
