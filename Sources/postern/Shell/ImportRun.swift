import Base
import Glibc
import JSON
import Messages
import PosternClient

/// One running import: some batches are on their way while others are answered.
///
/// It does not connect again, as the import of PosternAdmin does: it says where it stopped, and the same command goes
/// on there.
struct ImportRun {
    /// The most unanswered batches: the server always has the next batch while it commits one.
    private static let unansweredMax = 4

    private let stream: BidirectionalStream<UsersImportRequest, UsersImportResponse>
    private var answers: BidirectionalStream<UsersImportRequest, UsersImportResponse>.AsyncIterator
    private let session: Session
    private let rejects: RejectsFile?
    private let checkpoint: ImportCheckpoint?
    private var batch: ImportBatch
    /// The import says how passwords were hashed that name no hash spec.
    private let hasSpec: Bool
    private var unanswered = 0
    private var totals: ImportTotals
    private var ignored: [String: Int] = [:]
    private var factors = UnaskedFactors()
    /// Users of the file whose uid exists in the tenant.
    private var existingCount = 0
    private var progress: ImportProgress
    /// As the import names the tenant. Empty: the key's own tenant, or the default pool.
    private let tenantID: Text
    /// The users' file.
    private let source: Int32
    /// The value of --dk-len.
    private let hashByteCount: Int?
    /// The names that the rows of a trial have so far, because the server checks a trial row by row. Nil: no trial.
    private var taken: Set<ImportName>?

    init(
        stream: BidirectionalStream<UsersImportRequest, UsersImportResponse>, first: UsersImportRequest,
        session: Session, rejects: RejectsFile?, checkpoint: ImportCheckpoint?, source: Int32,
        hashByteCount: Int?
    ) {
        self.stream = stream
        self.answers = stream.makeAsyncIterator()
        self.batch = ImportBatch(first)
        self.hasSpec = first.spec != nil
        self.tenantID = first.tenantID
        self.session = session
        self.rejects = rejects
        self.checkpoint = checkpoint
        self.source = source
        self.progress = ImportProgress(of: source)
        self.totals = ImportTotals(before: checkpoint?.settled ?? ImportTotals.Settled())
        self.taken = first.validateOnly ? [] : nil
        self.hashByteCount = hashByteCount
    }

    mutating func importAll(_ source: any ImportSource) async throws {
        var source = source
        do {
            while let item = try source.next() { try await take(item) }
        } catch let error as CommandError {
            // A mistake on the command line that is found before anything was sent: nothing is sent.
            if error.exitCode == .usage, totals.sentCount == 0 {
                stream.cancel()
                throw error
            }
            // The rows before the error are settled first.
            try await finish()
            session.console.say(totals.summary)
            throw error.exitCode == .usage ? lateMistake(error) : error
        }
        try await finish()
        try await factors.tellIfSwitchedOff(session, tenantID: tenantID)
        try report()
    }

    /// A mistake on the command line that is found after some rows were sent. So it is no error of usage, after which
    /// nothing was sent.
    private func lateMistake(_ error: CommandError) -> CommandError {
        let isTrial = taken != nil
        let advice = "the rows before are imported: --on-conflict skip goes on behind them"
        return CommandError(error.message, hint: isTrial ? error.hint : error.hint ?? advice)
    }

    private mutating func take(_ item: ImportItem) async throws {
        switch item {
        case .hashSpec(let spec):
            if let full = batch.add(spec) { try await send(full) }
        case .rejected(let rejection):
            totals.readCount += 1
            try takeRejection(rejection)
        case .user(let user, let ignored):
            totals.readCount += 1
            if isSettled { return }
            guard hasSpec || user.passwordHash.isEmpty || !user.hashSpec.isEmpty else {
                totals.readCount -= 1
                throw CommandError.usage("the users have passwords: say how they are hashed with --hash-algo")
            }
            if let byteCount = hashByteCount, !user.passwordHash.isEmpty, user.passwordHash.byteCount != byteCount {
                return try takeRejection(
                    .malformed(
                        "the hash has \(user.passwordHash.byteCount) bytes, not --dk-len \(byteCount)", uid: user.uid))
            }
            if let name = takenName(of: user) {
                return try takeRejection(
                    FirebaseUser.Rejection(
                        uid: user.uid, reason: "DUPLICATE_IN_FILE", message: "a row before has the same \(name)"))
            }
            let full: UsersImportRequest?
            do throws(Failure) {
                full = try batch.add(user)
            } catch {
                return try takeRejection(
                    FirebaseUser.Rejection(uid: user.uid, reason: error.reason, message: error.message))
            }
            for name in ignored { self.ignored[name, default: 0] += 1 }
            factors.note(user)
            if let full { try await send(full) }
        }
    }

    /// True if an earlier run settled the row that was just read.
    private var isSettled: Bool { totals.readCount <= totals.before.rowCount }

    private mutating func takeRejection(_ rejection: FirebaseUser.Rejection) throws {
        if isSettled { return }
        totals.noteLocalRejection()
        try reject(row: totals.readCount, uid: rejection.uid, reason: rejection.reason, message: rejection.message)
    }

    /// In a trial: the kind of the row's first name that an earlier row has. Nil: none has one, and the names are kept.
    private mutating func takenName(of user: ImportUser) -> String? {
        guard let taken else { return nil }
        let names = ImportName.all(of: user)
        if let name = names.first(where: { taken.contains($0) }) { return name.kind }
        self.taken?.formUnion(names)
        return nil
    }

    private mutating func send(_ batch: UsersImportRequest) async throws {
        do {
            try await stream.send(batch)
        } catch {
            // The stream's end gives a better error.
            while unanswered > 0 { try await receive() }
            tellWhereItStopped()
            _ = try await answers.next()
            throw error
        }
        progress.noteSending(readByteCount: readByteCount)
        totals.sentCount += Int64(batch.users.count)
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
            if rejection.reason.string == Reason.duplicateLocalID.name { existingCount += 1 }
            try reject(
                row: totals.row(ofSent: rejection.index), uid: rejection.uid, reason: rejection.reason.string,
                message: rejection.message.string)
        }
        try checkpoint?.note(totals.settled)
        for name in totals.newIgnoredClaims(answer) {
            session.say("the custom claim \(name) is kept and goes into no token: only the server says it")
        }
        session.showProgress(
            progress.line(
                settled: totals.settled.rowCount, settledNow: totals.checkpoint, readByteCount: readByteCount))
    }

    /// The position in the users' file. 0 for a pipe.
    private var readByteCount: Int64 { max(0, Int64(lseek(source, 0, SEEK_CUR))) }

    private mutating func finish() async throws {
        if batch.hasUsers { try await send(batch.take()) }
        guard totals.sentCount > 0 else { return stream.cancel() }
        stream.finish()
        while unanswered > 0 { try await receive() }
        _ = try await answers.next()
        session.showProgress("")
    }

    private func tellWhereItStopped() {
        session.console.say(
            "stopped: \(totals.checkpoint) of \(totals.sentCount) rows sent are settled; "
                + (checkpoint == nil
                    ? "the same command with --on-conflict skip goes on" : "the same command goes on behind them"))
    }

    private func reject(row: Int64, uid: Text, reason: String, message: String) throws {
        let line: JSONValue = [
            "row": .integer(row), "uid": .string(uid), "reason": .string(Text(reason)),
            "message": .string(Text(message)),
        ]
        if let rejects {
            try rejects.append(line)
        } else if !session.output.isQuiet {
            session.console.say("row \(row) \(uid): \(message) [\(reason)]")
        }
    }

    private func report() throws {
        for (name, count) in ignored.sorted(by: { $0.key < $1.key }) {
            session.say("\(name) of \(count) users was left out: Postern does not keep it")
        }
        if taken != nil { session.console.say("nothing was written: this is what an import would do") }
        if session.output.isForPeople {
            session.console.print(totals.summary)
        } else {
            session.output.print(totals)
        }
        checkpoint?.remove()
        guard totals.isComplete else { throw CommandError("the counts do not add up: check before you rely on it") }
        guard totals.rejectedCount == 0 else {
            let advice =
                "--on-conflict skip leaves users that exist as they are, and --on-conflict replace replaces them"
            throw CommandError(
                "\(totals.rejectedCount) rows were rejected", hint: existingCount > 0 ? advice : nil, exitCode: .partial
            )
        }
    }
}

/// A name that only one user may have, as a trial remembers it.
private struct ImportName: Hashable {
    let kind: String
    private let hash: Int

    private init(_ kind: String, _ parts: Text...) {
        self.kind = kind
        hash = parts.hashValue
    }

    static func all(of user: ImportUser) -> [ImportName] {
        var names = [ImportName("uid", user.uid)]
        let email = user.email.bytes.lowercasedASCII
        if !email.isEmpty { names.append(ImportName("email", Text(unchecked: email))) }
        if !user.phoneNumber.isEmpty { names.append(ImportName("phone number", user.phoneNumber)) }
        for provider in user.providers where !["password", "phone"].contains(provider.providerID) {
            names.append(ImportName("identity", provider.providerID, provider.rawID, provider.issuer))
        }
        return names
    }
}
