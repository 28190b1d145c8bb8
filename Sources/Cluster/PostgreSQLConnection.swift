import Base
internal import CPostgreSQL
import Glibc
import Store

/// One connection to PostgreSQL: one query at a time, in binary, each with a timeout. One thread.
///
/// A query that takes too long ends the connection, and is not cancelled: a cancelled wait for the standby would leave
/// a row that was seen and may be lost. If somebody else cancels it, the outcome is unknown (`PostgreSQLWarning`).
final class PostgreSQLConnection {
    /// The names of libpq's parameters, and their values.
    typealias Parameters = [(name: String, value: String)]

    private let raw: OpaquePointer
    /// How long an answer may take before the connection counts as lost.
    let timeout: Duration
    /// The warning that came with the last answer.
    private let warning = PostgreSQLWarning()
    /// How long a statement may wait for another transaction (`JournalAddress.require`): half of `timeout`.
    var lockTimeoutMilliseconds: Int64 { max(1, timeout.microseconds / 2_000) }

    /// `address`: a connection string or URL of libpq. `parameters` come after it and override it.
    init(_ address: String, _ parameters: Parameters, timeout: Duration) throws(JournalEngineError) {
        let all: Parameters = [("dbname", address)] + parameters
        let names = CStrings(all.map(\.name))
        let values = CStrings(all.map(\.value))
        guard let raw = PQconnectdbParams(names.pointers, values.pointers, 1) else {
            throw .connectionLost("no memory for a connection")
        }
        guard PQstatus(raw) == CONNECTION_OK else {
            defer { PQfinish(raw) }
            throw .connectionLost(Self.message(raw))
        }
        (self.raw, self.timeout) = (raw, timeout)
        PQsetnonblocking(raw, 1)
        // Without a receiver, notices would go to standard error. Proof of the pointer: the connection holds the object
        // until PQfinish has returned, and libpq calls the receiver for this connection alone.
        _ = PQsetNoticeReceiver(
            raw,
            { warning, notice in
                guard let warning, let notice else { return }
                Unmanaged<PostgreSQLWarning>.fromOpaque(warning).takeUnretainedValue().note(notice)
            }, Unmanaged.passUnretained(warning).toOpaque())
    }

    deinit { PQfinish(raw) }

    /// The error message of libpq, in one line; it holds no password.
    private static func message(_ raw: OpaquePointer) -> String { inOneLine(PQerrorMessage(raw)) }

    private func lost() -> JournalEngineError { .connectionLost(Self.message(raw)) }

    // MARK: Asking

    func prepare(_ name: String, _ sql: String) throws(JournalEngineError) {
        guard PQsendPrepare(raw, name, sql, 0, nil) == 1 else { throw lost() }
        _ = try result()
    }

    /// One statement without parameters.
    @discardableResult
    func execute(_ sql: String) throws(JournalEngineError) -> PostgreSQLResult {
        guard PQsendQueryParams(raw, sql, 0, nil, nil, nil, nil, 1) == 1 else { throw lost() }
        return try result()
    }

    /// One statement, with parameters and results in PostgreSQL's binary form. Each `$1` in it needs a cast.
    @discardableResult
    func execute(_ sql: String, parameters: [[UInt8]?]) throws(JournalEngineError) -> PostgreSQLResult {
        let values = CBytes(parameters)
        let formats = [Int32](repeating: 1, count: parameters.count)
        let isSent =
            PQsendQueryParams(
                raw, sql, Int32(parameters.count), nil, values.pointers, values.lengths, formats, 1) == 1
        guard isSent else { throw lost() }
        return try result()
    }

    /// Runs a prepared statement; parameters and results are in PostgreSQL's binary form. `silenceMax`: if nothing at
    /// all comes for this long, the connection counts as lost before `timeout`.
    func execute(
        _ name: String, with parameters: [[UInt8]?], silenceMax: Duration? = nil
    ) throws(JournalEngineError) -> PostgreSQLResult {
        let values = CBytes(parameters)
        let formats = [Int32](repeating: 1, count: parameters.count)
        let isSent =
            PQsendQueryPrepared(
                raw, name, Int32(parameters.count), values.pointers, values.lengths, formats, 1) == 1
        guard isSent else { throw lost() }
        return try result(silenceMax: silenceMax)
    }

    /// Begins a transaction by these statements, which are sent together. False if the engine refused one of them: then
    /// there is no transaction.
    func begin(_ statements: [String]) throws(JournalEngineError) -> Bool {
        guard PQsendQuery(raw, (["BEGIN"] + statements).joined(separator: "; ")) == 1 else { throw lost() }
        if try answer().isDone { return true }
        try execute("ROLLBACK")
        return false
    }

    func commit() throws(JournalEngineError) {
        // COMMIT of a transaction that has failed is no error: the engine rolls it back, and says so.
        guard try execute("COMMIT").command == "COMMIT" else {
            throw .connectionLost("the engine rolled the transaction back")
        }
    }

    private func result(silenceMax: Duration? = nil) throws(JournalEngineError) -> PostgreSQLResult {
        let last = try answer(silenceMax: silenceMax)
        try last.check()
        // The results end only after the commit, so that a warning of the commit has come by now.
        if let text = warning.text { throw .connectionLost("the engine warned: \(text)") }
        return last
    }

    /// The last result of what was sent. It may be an error.
    private func answer(silenceMax: Duration? = nil) throws(JournalEngineError) -> PostgreSQLResult {
        let began = Instant.now
        let (deadline, silence) = (began.advanced(by: timeout), silenceMax ?? timeout)
        warning.forget()
        try send(until: deadline)
        var last: PostgreSQLResult?
        var heard = began
        while true {
            while PQisBusy(raw) == 1 {
                let end = min(deadline, heard.advanced(by: silence))
                if try isReadable(until: end, besides: -1) {
                    heard = .now
                } else if Instant.now >= end {
                    // Otherwise a signal ended the wait early.
                    throw .connectionLost("no answer within \(end == deadline ? timeout : silence)")
                }
            }
            guard let next = PQgetResult(raw) else { break }
            last = PostgreSQLResult(next)
        }
        guard let last else { throw lost() }
        return last
    }

    private func send(until deadline: Instant) throws(JournalEngineError) {
        while true {
            let left = PQflush(raw)
            if left == 0 { return }
            guard left == 1, Instant.now < deadline else { throw lost() }
            // The server may take more only after its output was read.
            var waited = pollfd(fd: PQsocket(raw), events: Int16(POLLIN | POLLOUT), revents: 0)
            _ = poll(&waited, 1, 100)
            if waited.revents & Int16(POLLIN) != 0, PQconsumeInput(raw) != 1 { throw lost() }
        }
    }

    // MARK: Waiting

    /// Waits for data from the server, and takes it in. False if `deadline` passed, or if `other` is readable.
    private func isReadable(until deadline: Instant?, besides other: Int32) throws(JournalEngineError) -> Bool {
        var waited = [
            pollfd(fd: PQsocket(raw), events: Int16(POLLIN), revents: 0),
            pollfd(fd: other, events: Int16(POLLIN), revents: 0),
        ]
        let milliseconds = deadline.map { max(0, $0.nanoseconds(since: .now) / 1_000_000 + 1) } ?? -1
        let count = poll(&waited, 2, Int32(clamping: milliseconds))
        if count < 0, errno != EINTR { throw .connectionLost("poll: errno \(errno)") }
        guard waited[0].revents != 0 else { return false }
        guard PQconsumeInput(raw) == 1 else { throw lost() }
        return true
    }

    /// Whether a notification came before `deadline` and before `descriptor` was readable.
    func waitForNotification(or descriptor: Int32, until deadline: Instant?) throws(JournalEngineError) -> Bool {
        if takeNotifications() { return true }
        guard try isReadable(until: deadline, besides: descriptor) else { return false }
        return takeNotifications()
    }

    private func takeNotifications() -> Bool {
        var isThere = false
        while let notification = PQnotifies(raw) {
            PQfreemem(notification)
            isThere = true
        }
        return isThere
    }
}

/// The result of a statement. One thread.
final class PostgreSQLResult {
    private let raw: OpaquePointer

    fileprivate init(_ raw: OpaquePointer) { self.raw = raw }
    deinit { PQclear(raw) }

    var rowCount: Int { Int(PQntuples(raw)) }
    /// The statement that was done, in the engine's words. A COMMIT may be answered by "ROLLBACK".
    var command: String { PQcmdStatus(raw).map { String(cString: $0) } ?? "" }

    fileprivate var isDone: Bool {
        let status = PQresultStatus(raw)
        return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK
    }

    /// A value's bytes, for as long as the result lives; nil for NULL.
    func bytes(_ row: Int, _ column: Int) -> UnsafeRawBufferPointer? {
        guard PQgetisnull(raw, Int32(row), Int32(column)) == 0 else { return nil }
        return UnsafeRawBufferPointer(
            start: PQgetvalue(raw, Int32(row), Int32(column)), count: Int(PQgetlength(raw, Int32(row), Int32(column))))
    }

    /// A bigint, or an integer.
    func integer(_ row: Int, _ column: Int) -> Int64? {
        guard let bytes = bytes(row, column) else { return nil }
        switch bytes.count {
        case 8: return Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
        case 4: return Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
        default: return nil
        }
    }

    func text(_ row: Int, _ column: Int) -> String? {
        bytes(row, column).map { String(decoding: $0, as: UTF8.self) }
    }

    /// An SQL error means that the statement was not done, except for the classes 08 and 57, which end the connection,
    /// and 40003, after which nobody knows. In any case, the caller tries again over a new connection. A refused wait
    /// for a lock (55P03) may have been a wait for an earlier try of the same entry, whose outcome is still unknown.
    fileprivate func check() throws(JournalEngineError) {
        if isDone { return }
        let state = PQresultErrorField(raw, Int32(UInt8(ascii: "C"))).map { String(cString: $0) } ?? "none"
        throw .connectionLost("SQLSTATE \(state): \(inOneLine(PQresultErrorMessage(raw)))")
    }
}

func inOneLine(_ message: UnsafePointer<CChar>?) -> String {
    let text = message.map { String(cString: $0) } ?? ""
    return text.split { $0 == "\n" || $0 == "\t" }.joined(separator: "; ")
}

/// C strings in an array that ends with a null pointer.
private final class CStrings {
    let pointers: UnsafeMutablePointer<UnsafePointer<CChar>?>
    private let copies: [UnsafeMutablePointer<CChar>?]

    init(_ strings: [String]) {
        copies = strings.map { strdup($0) }
        pointers = .allocate(capacity: strings.count + 1)
        for (index, copy) in copies.enumerated() { (pointers + index).initialize(to: copy.map { UnsafePointer($0) }) }
        (pointers + strings.count).initialize(to: nil)
    }

    deinit {
        for copy in copies { free(copy) }
        pointers.deallocate()
    }
}

/// The values of a statement's parameters, in the form of libpq.
private final class CBytes {
    let pointers: UnsafeMutablePointer<UnsafePointer<CChar>?>
    let lengths: [Int32]
    private let storage: UnsafeMutableRawBufferPointer

    init(_ values: [[UInt8]?]) {
        lengths = values.map { Int32(clamping: $0?.count ?? 0) }
        storage = .allocate(byteCount: values.reduce(1) { $0 + ($1?.count ?? 0) }, alignment: 1)
        pointers = .allocate(capacity: values.count + 1)
        pointers.initialize(repeating: nil, count: values.count + 1)
        var offset = 0
        for (index, value) in values.enumerated() {
            guard let value else { continue }
            let place = UnsafeMutableRawBufferPointer(rebasing: storage[offset..<offset + value.count])
            place.copyBytes(from: value)
            // Not null, even for a value of no bytes: a null pointer would make it NULL.
            pointers[index] = UnsafePointer((storage.baseAddress! + offset).assumingMemoryBound(to: CChar.self))
            offset += value.count
        }
    }

    deinit {
        storage.deallocate()
        pointers.deallocate()
    }
}
