import Base
import Glibc
import JSON
import Messages
import PosternClient

/// postern user import: a Firebase export, in batches, every row accounted for.
enum UserImport {
    static let command = Command(
        path: ["user", "import"], summary: "Brings users in from a Firebase export (JSON), with their passwords.",
        example: "-t acme user import users.json --hash-algo scrypt --hash-key-file key --rounds 8 --mem-cost 14",
        operands: [.required("file|-")],
        flags: [
            Flag("hash-algo", "scrypt|bcrypt|argon2id", "how the passwords are hashed; scrypt is Firebase's own"),
            Flag("hash-key-file", "FILE", "scrypt: holds the signer key in base64"),
            Flag("hash-key", "BASE64", "scrypt: the signer key itself; it stays in the shell's history"),
            Flag("salt-separator", "BASE64", "scrypt: default Bw=="),
            Flag("rounds", "N", "scrypt: default 8"),
            Flag("mem-cost", "N", "scrypt: default 14"),
            Flag("on-conflict", "fail|skip|replace", "what to do with a uid that exists (default fail)"),
            Flag("rejects", "FILE", "write rejected rows there, one JSON object per line"),
        ]
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
        let stream = try await UsersClient(channel: session.channel()).import(options: session.streamOptions)
        let first = UsersImportRequest(
            tenantID: try session.tenantID(), spec: spec, onConflict: conflict ?? .fail)
        var run = ImportRun(stream: stream, first: first, session: session, rejects: rejects)
        let reader = FirebaseExportReader { try File.readChunk(descriptor: source, name: path) }
        try await run.importAll(reader)
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

/// One import as it goes: some batches are on their way while others are answered.
struct ImportRun {
    private static let batchMax = 500
    /// So that the server always has the next batch while it commits one.
    private static let unansweredMax = 4

    private let stream: BidirectionalStream<UsersImportRequest, UsersImportResponse>
    private var answers: BidirectionalStream<UsersImportRequest, UsersImportResponse>.AsyncIterator
    private let session: Session
    private let rejects: Int32?
    private var batch: UsersImportRequest
    private var unanswered = 0
    private var totals = ImportTotals()
    private var ignored: [String: Int] = [:]

    init(
        stream: BidirectionalStream<UsersImportRequest, UsersImportResponse>, first: UsersImportRequest,
        session: Session, rejects: Int32?
    ) {
        self.stream = stream
        self.answers = stream.makeAsyncIterator()
        self.batch = first
        self.session = session
        self.rejects = rejects
    }

    mutating func importAll(_ source: FirebaseExportReader) async throws {
        var reader = source
        let hasSpec = batch.spec != nil
        do {
            while let row = try reader.next() {
                try take(row, hasSpec: hasSpec)
                if batch.users.count == Self.batchMax { try await send() }
            }
        } catch let error as CommandError {
            // The rows before it are settled first.
            try await finish()
            session.console.say(totals.summary)
            throw error
        }
        try await finish()
        try report()
    }

    private mutating func take(_ row: [UInt8], hasSpec: Bool) throws {
        totals.readCount += 1
        let parsed: FirebaseUser
        do throws(FirebaseUser.Rejection) {
            parsed = try FirebaseUser(parsing: row)
        } catch {
            totals.noteLocalRejection()
            return try reject(row: totals.readCount, uid: error.uid, reason: error.reason, message: error.message)
        }
        guard hasSpec || parsed.user.passwordHash.isEmpty else {
            totals.readCount -= 1
            throw CommandError.usage("the users have passwords: say how they are hashed with --hash-algo")
        }
        for name in parsed.ignored { ignored[name, default: 0] += 1 }
        batch.users.append(parsed.user)
    }

    private mutating func send() async throws {
        do {
            try await stream.send(batch)
        } catch {
            // The stream's end tells better what went wrong.
            while unanswered > 0 { try await receive() }
            _ = try await answers.next()
            tellWhereItStopped()
            throw error
        }
        totals.sentCount += Int64(batch.users.count)
        batch = UsersImportRequest()
        unanswered += 1
        while unanswered >= Self.unansweredMax { try await receive() }
    }

    private mutating func receive() async throws {
        let answer: UsersImportResponse?
        do {
            answer = try await answers.next()
        } catch {
            tellWhereItStopped()
            throw error
        }
        guard let answer else {
            tellWhereItStopped()
            throw CommandError("the server ended the import early")
        }
        unanswered -= 1
        totals.note(answer)
        for rejection in answer.rejections {
            try reject(
                row: totals.row(ofSent: rejection.index), uid: rejection.uid, reason: rejection.reason.string,
                message: rejection.message.string)
        }
        for name in totals.newIgnoredClaims(answer) {
            session.say("the custom claim \(name) is kept and goes into no token: only the server says it")
        }
        if session.console.messagesAreForTerminal, !session.output.isQuiet {
            session.console.writeMessage([UInt8]("\r\(totals.checkpoint) rows are settled".utf8))
        }
    }

    private mutating func finish() async throws {
        if !batch.users.isEmpty { try await send() }
        guard totals.sentCount > 0 else { return stream.cancel() }
        stream.finish()
        while unanswered > 0 { try await receive() }
        _ = try await answers.next()
        if session.console.messagesAreForTerminal, !session.output.isQuiet {
            session.console.writeMessage([UInt8]("\r\u{1B}[K".utf8))
        }
    }

    private func tellWhereItStopped() {
        session.console.say(
            "stopped: \(totals.checkpoint) of \(totals.sentCount) rows sent are settled; "
                + "the same command with --on-conflict skip goes on")
    }

    private func reject(row: Int64, uid: Text, reason: String, message: String) throws {
        let line: JSONValue = [
            "row": .integer(row), "uid": .string(uid), "reason": .string(Text(reason)),
            "message": .string(Text(message)),
        ]
        if let rejects {
            try File.write(line.serialized() + [0x0A], to: rejects, name: "--rejects")
        } else if !session.output.isQuiet {
            session.console.say("row \(row) \(uid): \(message) [\(reason)]")
        }
    }

    private func report() throws {
        for (name, count) in ignored.sorted(by: { $0.key < $1.key }) {
            session.say("\(name) of \(count) users was left out: Postern does not keep it")
        }
        session.console.print(totals.summary)
        guard totals.isComplete else { throw CommandError("the counts do not add up: check before you rely on it") }
        guard totals.rejectedCount == 0 else {
            throw CommandError("\(totals.rejectedCount) rows were rejected", exitCode: .partial)
        }
    }
}

/// What became of the rows.
struct ImportTotals: Equatable {
    var readCount: Int64 = 0
    var sentCount: Int64 = 0
    private(set) var createdCount: Int64 = 0
    private(set) var replacedCount: Int64 = 0
    private(set) var skippedCount: Int64 = 0
    private(set) var rejectedCount: Int64 = 0
    private var ignoredClaims: [Text] = []
    /// Rows sent that are durable.
    private(set) var checkpoint: Int64 = 0
    /// Rows of the file that were never sent, from 1.
    private var unsentRows: [Int64] = []

    /// The server counts over the whole stream, and names the rejected rows of one batch.
    mutating func note(_ answer: UsersImportResponse) {
        createdCount = answer.createdCount
        replacedCount = answer.replacedCount
        skippedCount = answer.skippedCount
        rejectedCount += Int64(answer.rejections.count)
        checkpoint = answer.checkpoint
    }

    /// Names that were not told of before.
    mutating func newIgnoredClaims(_ answer: UsersImportResponse) -> [Text] {
        let new = answer.ignoredClaims.filter { !ignoredClaims.contains($0) }
        ignoredClaims += new
        return new
    }

    /// The row that was just read cannot be sent.
    mutating func noteLocalRejection() {
        rejectedCount += 1
        unsentRows.append(readCount)
    }

    /// The row of the file, from 1, that is number `index`, from 0, of those sent.
    func row(ofSent index: Int64) -> Int64 {
        var row = index + 1
        for unsent in unsentRows {
            guard unsent <= row else { break }
            row += 1
        }
        return row
    }

    var isComplete: Bool { readCount == createdCount + replacedCount + skippedCount + rejectedCount }

    var summary: String {
        "read \(readCount), created \(createdCount), replaced \(replacedCount), skipped \(skippedCount), "
            + "rejected \(rejectedCount)"
    }
}
