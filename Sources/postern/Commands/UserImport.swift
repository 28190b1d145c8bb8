import Base
import Glibc
import JSON
import Messages
import PosternClient

/// postern user import: a file of users, in batches, every row accounted for.
enum UserImport {
    static let command = Command(
        path: ["user", "import"],
        summary: "Brings users in from a file of user export or of Firebase, with their passwords.",
        example: "-t acme user import users.json --hash-algo scrypt --hash-key-file key --rounds 8 --mem-cost 14",
        operands: [.required("file|-")],
        flags: [
            Flag("format", "FORMAT", "ndjson, firebase-json or firebase-csv; default: by the file's name"),
            Flag("hash-algo", "scrypt|bcrypt|argon2id", "how the passwords are hashed; scrypt is Firebase's own"),
            Flag("hash-key-file", "FILE", "scrypt: holds the signer key in base64"),
            Flag("hash-key", "BASE64", "scrypt: the signer key itself; it stays in the shell's history"),
            Flag("salt-separator", "BASE64", "scrypt: default Bw=="),
            Flag("rounds", "N", "scrypt: default 8"),
            Flag("mem-cost", "N", "scrypt: default 14"),
            Flag("on-conflict", "fail|skip|replace", "what to do with a uid that exists (default fail)"),
            Flag("rejects", "FILE", "write rejected rows there, one JSON object per line"),
            Flag("dry-run", "check every row, against the others too, and write nothing"),
            Flag("checkpoint", "FILE", "note there what is settled; the same command goes on behind it"),
        ], isValidatable: true
    ) { session in
        let spec = try spec(session)
        let conflict: ImportConflict? = try session.arguments.choice(
            "on-conflict", of: [("fail", .fail), ("skip", .skip), ("replace", .replace)])
        let path = session.arguments.operands[0]
        let source = path == "-" ? STDIN_FILENO : try File.open(path)
        var rejects: Int32?
        if let file = session.arguments.value("rejects") {
            rejects = try File.open(file, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
        }
        let isTrial = session.isValidatingOnly || session.arguments.isSet("dry-run")
        let format = try format(session, path: path)
        let checkpoint = try session.arguments.value("checkpoint").map { try ImportCheckpoint($0, of: source) }
        guard checkpoint == nil || !isTrial else { throw CommandError.usage("--dry-run needs no --checkpoint") }
        let first = UsersImportRequest(
            tenantID: try session.tenantID(), spec: spec, onConflict: conflict ?? .fail, validateOnly: isTrial)
        let stream = try await UsersClient(channel: session.channel()).import(options: session.streamOptions)
        var run = ImportRun(stream: stream, first: first, session: session, rejects: rejects, checkpoint: checkpoint)
        try await run.importAll(format.source { try File.readChunk(descriptor: source, name: path) })
    }

    /// A pipe, and a file whose name says nothing, hold what Firebase calls JSON, as ever.
    private static func format(_ session: Session, path: String) throws(CommandError) -> UserFileFormat {
        guard let named = session.arguments.value("format") else {
            return (try? .find(nil, path: path)) ?? .firebaseJSON
        }
        return try .find(named, path: path)
    }

    private static func spec(_ session: Session) throws -> PasswordHashSpec? {
        let arguments = session.arguments
        switch arguments.value("hash-algo")?.lowercased() {
        case nil: return nil
        case "bcrypt": return PasswordHashSpec(algorithm: .bcrypt(BcryptSpec()))
        case "argon2id": return PasswordHashSpec(algorithm: .argon2id(Argon2idSpec()))
        case "scrypt":
            guard let key = decodeLenientBase64(try hashKey(session)) else {
                throw CommandError.usage("the hash key is no base64")
            }
            guard let separator = decodeLenientBase64(arguments.text("salt-separator") ?? "Bw==") else {
                throw CommandError.usage("--salt-separator is no base64")
            }
            return PasswordHashSpec(
                algorithm: .firebaseScrypt(
                    FirebaseScryptSpec(
                        signerKey: Secret(key), saltSeparator: separator,
                        rounds: Int32(try arguments.integer("rounds", in: 1...8) ?? 8),
                        memoryCost: Int32(try arguments.integer("mem-cost", in: 1...14) ?? 14))))
        case let other?:
            throw CommandError.usage("--hash-algo is scrypt, bcrypt or argon2id, not \"\(other)\"")
        }
    }

    private static func hashKey(_ session: Session) throws -> Text {
        if let key = session.arguments.text("hash-key") { return key }
        guard let path = session.arguments.value("hash-key-file") else {
            throw CommandError.usage("scrypt needs --hash-key-file FILE", hint: "the key is in Firebase's console")
        }
        guard let key = Text(validating: Array(try File.read(path).trimmed())) else {
            throw CommandError("\(path): is no text")
        }
        return key
    }
}
