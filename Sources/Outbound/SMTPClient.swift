public import Base
import Synchronization

/// Sends mail to a server over SMTP (RFC 5321), on the pool's threads. Any thread.
public final class SMTPClient: Sendable {
    private let pool: OutboundPool
    private let lookups: NameLookups
    private let certificateFile: String?
    private let times: SMTPTimes
    private let stopping = SMTPStop()
    /// Handles without a connection. A handle keeps the certificates that it trusts, which take long to read.
    private let idle = Mutex<[CurlHandle]>([])

    private static let idleHandlesMax = 8

    /// `lookups`: shared by all clients of the pool.
    public init(
        pool: OutboundPool, lookups: NameLookups = NameLookups(), certificateFile: String? = nil,
        times: SMTPTimes = SMTPTimes()
    ) {
        self.pool = pool
        self.lookups = lookups
        self.certificateFile = certificateFile
        self.times = times
    }

    /// Ends the mails that no server has got whole yet, and refuses further mails (`SMTPError.stopped`). The answers to
    /// the other mails are waited for until `end`. Returns at once. Only the first call counts.
    public func stop(awaitingAnswersUntil end: Instant) { stopping.begin(awaitingAnswersUntil: end) }

    /// Sends `message`, which includes its header, from one mailbox to another.
    ///
    /// - Throws: `SMTPError`. The server was not asked: `OutboundError.overloaded`; the pool's error if it is full or
    ///   closed or the deadline passes; `CancellationError`.
    public func send(
        _ message: Secret, from sender: Text, to recipient: Text, through server: SMTPServer, tenant: Text,
        deadline: Instant
    ) async throws {
        let order = SMTPExchange.Order(
            message: message, sender: sender, recipient: recipient, server: server, times: times, stopping: stopping)
        try await pool.run(tenant: tenant, deadline: deadline, isPatient: true) { [self] () throws -> Void in
            guard !stopping.hasBegun else { throw SMTPError.stopped }
            let handle = idle.withLock { $0.popLast() } ?? CurlHandle()
            defer {
                idle.withLock { idle in
                    if idle.count < Self.idleHandlesMax { idle.append(handle) }
                }
            }
            try SMTPExchange(order).perform(
                on: handle, certificateFile: certificateFile, deadline: deadline
            ) { try addresses(of: server.host, tenant: tenant, within: $0) }
        }
    }

    private func addresses(of host: Text, tenant: Text, within limit: Duration) throws -> [IPAddress] {
        do throws(OutboundError) {
            return try lookups.addresses(of: host, tenant: tenant, within: limit) { !stopping.hasBegun }
        } catch {
            if error == .overloaded { throw error }
            if error == .timedOut, stopping.hasBegun { throw SMTPError.stopped }
            throw SMTPError.transient(code: 0, error)
        }
    }
}
