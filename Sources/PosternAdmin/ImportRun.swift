import Base
import Messages
import PosternClient

/// An import under way: a batch that is being filled, and batches and refused rows that are not settled yet.
struct ImportRun {
    /// A part of the rows, which are settled in their order.
    private enum Part {
        case batch(UsersImportRequest)
        /// A row that no message can hold. It is never sent.
        case refused(ImportRejection)
    }

    /// The most unsettled parts: the server always has the next batch while it commits one.
    private static let unsettledMax = 4

    private let admin: TenantAdmin
    private let header: UsersImportRequest
    private var options: CallOptions

    private var report = ImportReport()
    private var batch = ImportBatch()
    /// Full batches without an answer, and refused rows behind them, oldest first. The batches among the first
    /// `sentCount` went out on `stream`.
    private var unsettled: [Part] = []
    private var sentCount = 0
    /// The specs that rows may name, in the order in which they came. `stream` has the first `sentSpecCount`.
    private var hashSpecs: [NamedHashSpec] = []
    private var sentSpecCount = 0

    private var stream: BidirectionalStream<UsersImportRequest, UsersImportResponse>?
    private var answers: ServerStream<UsersImportResponse>.Iterator?
    private var hasSentHeader = false
    /// The report at the start of the stream, because the server counts by stream. It also counts the refused rows
    /// that were settled since then.
    private var reportBefore = ImportReport()
    private var failureCount = 0
    /// The history of the server's store before the first row was sent. Nil: it was not asked for. Empty: an older
    /// server does not tell it.
    private var historyID: Text?
    /// The settled rows were sent on another stream, and it is not known yet whether the store still has them.
    private var needsProof = false

    init(_ admin: TenantAdmin, _ spec: PasswordHashSpec?, _ onConflict: ImportConflict, _ options: CallOptions) {
        self.admin = admin
        self.header = UsersImportRequest(tenantID: admin.tenantID, spec: spec, onConflict: onConflict)
        self.options = options
    }

    /// Adds a spec for later rows. The same spec may come again, as in an export that was continued.
    mutating func add(_ spec: NamedHashSpec) {
        if !hashSpecs.contains(spec) { hashSpecs.append(spec) }
    }

    mutating func add(_ user: ImportUser, _ progress: (ImportReport) -> Void) async throws(Failure) {
        do throws(Failure) {
            guard let full = try batch.add(user) else { return }
            unsettled.append(.batch(full))
        } catch {
            // The rows before it are settled before it.
            if batch.hasUsers { unsettled.append(.batch(batch.take())) }
            unsettled.append(
                .refused(ImportRejection(uid: user.uid, reason: Text(error.reason), message: Text(error.message))))
        }
        try await settle(downTo: Self.unsettledMax - 1, progress)
    }

    mutating func finish(_ progress: (ImportReport) -> Void) async throws(Failure) -> ImportReport {
        if batch.hasUsers { unsettled.append(.batch(batch.take())) }
        try await settle(downTo: 0, progress)
        stream?.finish()
        // Everything is durable: how the stream ends changes nothing.
        _ = try? await answers?.next()
        return report
    }

    private mutating func settle(downTo count: Int, _ progress: (ImportReport) -> Void) async throws(Failure) {
        while true {
            do throws(Failure) {
                while sentCount < unsettled.count { try await send(unsettled[sentCount], progress) }
                while unsettled.count > count { try await receive(progress) }
                return
            } catch {
                try await resume(after: error)
            }
        }
    }

    private mutating func send(_ part: Part, _ progress: (ImportReport) -> Void) async throws(Failure) {
        guard case .batch(let request) = part else {
            sentCount += 1
            return
        }
        if stream == nil {
            // Only an import that repeats rows counts rows of one stream together with rows of another.
            if repeatsRows, historyID == nil { historyID = try await history(waiting: options.waitsForConnection) }
            let opened = try await admin.users.import(options: options)
            (stream, answers, hasSentHeader, sentSpecCount) = (opened, opened.makeAsyncIterator(), false, 0)
        }
        try await sendSpecs(progress)
        do throws(Failure) {
            try await sendOnStream(request)
        } catch {
            // Answers that came before count, and the stream's own end gives a better error.
            while sentCount > 0 { try await receive(progress) }
            throw error
        }
        sentCount += 1
    }

    /// Sends the specs that the stream does not have yet, and waits for their answers, which settle no rows.
    private mutating func sendSpecs(_ progress: (ImportReport) -> Void) async throws(Failure) {
        guard sentSpecCount < hashSpecs.count else { return }
        while sentCount > 0 { try await receive(progress) }
        while sentSpecCount < hashSpecs.count {
            var specs = ImportBatch()
            var full: UsersImportRequest?
            for spec in hashSpecs[sentSpecCount...] where full == nil { full = specs.add(spec) }
            let message = full ?? specs.take()
            do throws(Failure) {
                try await sendOnStream(message)
            } catch {
                // The stream's own end gives a better error.
                _ = try await answers?.next()
                throw error
            }
            guard try await answers?.next() != nil else { throw Self.endedEarly }
            sentSpecCount += message.hashSpecs.count
        }
    }

    private mutating func sendOnStream(_ request: UsersImportRequest) async throws(Failure) {
        var request = request
        if !hasSentHeader {
            request.tenantID = header.tenantID
            request.spec = header.spec
            request.onConflict = header.onConflict
        }
        try await stream?.send(request)
        hasSentHeader = true
    }

    private static let endedEarly = Failure(.streamEnded, "The server ended the import early.")

    private mutating func receive(_ progress: (ImportReport) -> Void) async throws(Failure) {
        if case .refused(var rejection) = unsettled.first {
            rejection.index = report.checkpoint
            report.rejections.append(rejection)
            report.checkpoint += 1
            reportBefore.checkpoint += 1
        } else {
            guard let answer = try await answers?.next() else { throw Self.endedEarly }
            try await proveSettledRows()
            report = reportBefore.adding(answer, to: report.rejections)
            failureCount = 0
        }
        unsettled.removeFirst()
        sentCount -= 1
        progress(report)
    }

    /// Throws if the rows that were settled on an earlier stream may be gone, because the server's store was replaced
    /// meanwhile. It is called behind an answer of the present stream: if the history is the same afterwards, it was
    /// the same when the rows of the answer were settled.
    private mutating func proveSettledRows() async throws(Failure) {
        guard needsProof, let historyID, !historyID.isEmpty else { return }
        let present = try await history(waiting: false)
        guard present.isEmpty || present == historyID else {
            // No row counts as settled.
            report = ImportReport()
            throw Failure(
                .streamEnded, as: .aborted,
                "The server's store changed during the import: a backup was restored, or it became another store. Rows "
                    + "that were settled may not be in it. Import all rows again with onConflict .skip.")
        }
        needsProof = false
    }

    private func history(waiting: Bool) async throws(Failure) -> Text {
        // A call that waits for a connection waits as long as the stream would.
        let timeout = options.timeout ?? (waiting ? Duration.days(365) : nil)
        let asking = CallOptions(
            timeout: timeout, authorization: options.authorization, requestID: options.requestID,
            traceparent: options.traceparent, waitsForConnection: waiting)
        return try await ProjectClient(channel: admin.channel).serverInfo(.init(), options: asking).historyID
    }

    private var repeatsRows: Bool { header.onConflict == .skip || header.onConflict == .replace }

    /// Prepares sending the unsettled batches again on another stream. Throws `failure` when repeating them would
    /// change the result.
    private mutating func resume(after failure: Failure) async throws(Failure) {
        failureCount += 1
        guard failure.code == .unavailable, !failure.is(.channelClosed), repeatsRows, report.checkpoint > 0,
            failureCount < admin.channel.options.retry.attemptsMax
        else { throw failure.with("checkpoint", "\(report.checkpoint)") }
        (stream, answers, sentCount, needsProof) = (nil, nil, 0, true)
        reportBefore = report
        options.waitsForConnection = true
        // If the task is cancelled meanwhile, the next stream throws it, with the checkpoint.
        try? await pause(afterFailures: failureCount)
    }
}
