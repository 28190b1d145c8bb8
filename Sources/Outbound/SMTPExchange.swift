import Base
import CCurl

/// One mail on a worker thread; libcurl's callbacks come on the same thread, inside of `curl_easy_perform`.
final class SMTPExchange {
    struct Order: Sendable {
        let message: Secret
        let sender: Text
        let recipient: Text
        let server: SMTPServer
        let times: SMTPTimes
        let stopping: SMTPStop
    }

    /// Why this exchange was ended before an answer to the mail came.
    private enum Ending { case overdue, stopped }

    /// A connection that breaks while the answer to the whole mail is awaited leaves it open whether the server takes
    /// the mail, if it lasted for so long. A server that breaks off earlier does not take the mail.
    private static let unansweredAfter = Duration.seconds(10)

    private let message: Secret
    private let server: SMTPServer
    private let times: SMTPTimes
    private let stopping: SMTPStop
    private var sentByteCount = 0
    /// When libcurl got the end of the message.
    private var wholeAt: Instant?
    /// Whether the server took the user name and password, or there is no user name.
    private var isLoggedIn: Bool
    /// When the answer came that decides about the mail: to the whole message, or a refusal before.
    private var answeredAt: Instant?
    /// Whether the server has taken the whole mail.
    private var isTaken = false
    /// When the server must have the whole mail.
    private var sendBy = Instant.now
    /// When the time for the mail is over, except for QUIT.
    private var end = Instant.now
    private var ending: Ending?
    private var isAddressRefused = false
    /// Whether an address is not ASCII. libcurl asks for SMTPUTF8 if the server offers it, and goes on if it does not.
    private let needsUTF8: Bool
    private var capabilities = SMTPCapabilities()
    private let sender: Text
    private let recipient: Text

    init(_ order: Order) {
        self.message = order.message
        self.server = order.server
        self.times = order.times
        self.stopping = order.stopping
        self.sender = order.sender
        self.recipient = order.recipient
        self.isLoggedIn = order.server.username.isEmpty
        self.needsUTF8 = (order.sender.bytes + order.recipient.bytes).contains { $0 >= 0x80 }
    }

    /// `lookUp` finds the addresses of the mail server within the time that it is given.
    func perform(
        on handle: CurlHandle, certificateFile: String?, deadline: Instant, lookUp: (Duration) throws -> [IPAddress]
    ) throws {
        let now = Instant.now
        let remaining = min(times.whole, .nanoseconds(deadline.nanoseconds(since: now)))
        guard remaining > .zero else { throw SMTPError.transient(code: 0, .timedOut) }
        (sendBy, end) = (now.advanced(by: min(times.send, remaining)), now.advanced(by: remaining))
        let recipients = CurlList(["<\(recipient)>"])
        let context = Unmanaged.passUnretained(self).toOpaque()
        var opener = postern_curl_opener(
            may_open: { context, address, byteCount in
                guard let context, let address else { return 0 }
                let exchange = Unmanaged<SMTPExchange>.fromOpaque(context).takeUnretainedValue()
                let bytes = Array(UnsafeBufferPointer(start: address, count: byteCount))
                return exchange.mayOpen(IPAddress(bytes: bytes)) ? 1 : 0
            }, context: context)
        try withExtendedLifetime((self, recipients)) {
            try withUnsafePointer(to: &opener) { opener in
                handle.reset(certificateFile: certificateFile)
                // The handle must keep nothing of this mail after it.
                defer { curl_easy_reset(handle.pointer) }
                configure(handle, recipients: recipients)
                handle.check(postern_curl_set_opener(handle.pointer, opener), CURLOPT_OPENSOCKETFUNCTION)
                setCallbacks(handle, context)
                let code = try handle.perform(
                    port: server.port, timeout: remaining, connectTimeout: times.connect, lookUp: lookUp)
                try finish(code, handle)
            }
        }
    }

    private func setCallbacks(_ handle: CurlHandle, _ context: UnsafeMutableRawPointer) {
        handle.set(CURLOPT_READDATA, pointer: context)
        handle.set(CURLOPT_READFUNCTION) { buffer, size, count, context in
            guard let context, let buffer else { return 0 }
            let exchange = Unmanaged<SMTPExchange>.fromOpaque(context).takeUnretainedValue()
            // A mail that ends before its last line is not delivered (RFC 5321 §4.1.1.4).
            if exchange.lacksUTF8 { return Int(CURL_READFUNC_ABORT) }
            return exchange.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: size * count))
        }
        // libcurl passes every line the server answers to the header function.
        handle.set(CURLOPT_HEADERDATA, pointer: context)
        handle.set(CURLOPT_HEADERFUNCTION) { line, size, count, context in
            guard let context, let line else { return 0 }
            let bytes = UnsafeRawBufferPointer(start: line, count: size * count)
            Unmanaged<SMTPExchange>.fromOpaque(context).takeUnretainedValue().received(bytes)
            return size * count
        }
        // libcurl's own limits do not hold for its QUIT: it would wait 120 seconds for the answer (libcurl 7.88.1). Nor
        // do they know when the mail is whole, or that this server stops.
        handle.check(
            postern_curl_set_progress(
                handle.pointer,
                { context, _, _, _, _ in
                    guard let context else { return 1 }
                    return Unmanaged<SMTPExchange>.fromOpaque(context).takeUnretainedValue().mustEnd() ? 1 : 0
                }, context),
            CURLOPT_XFERINFOFUNCTION)
    }

    private func configure(_ handle: CurlHandle, recipients: CurlList) {
        let scheme = server.security == .tls ? "smtps" : "smtp"
        let host = server.host.string.contains(":") ? "[\(server.host)]" : server.host.string
        handle.set(CURLOPT_URL, "\(scheme)://\(host):\(server.port)/postern")
        handle.set(CURLOPT_PROTOCOLS_STR, scheme)
        handle.set(CURLOPT_USE_SSL, Int((server.security == .none ? CURLUSESSL_NONE : CURLUSESSL_ALL).rawValue))
        handle.set(CURLOPT_MAIL_FROM, "<\(sender)>")
        handle.set(CURLOPT_MAIL_RCPT, recipients)
        handle.set(CURLOPT_UPLOAD, 1)
        // libcurl says QUIT while the transfer's callbacks still hold, and not when the handle is freed.
        handle.set(CURLOPT_FORBID_REUSE, 1)
        // The next mail over this handle may be another tenant's: it finds neither a connection nor a session of TLS.
        handle.set(CURLOPT_FRESH_CONNECT, 1)
        handle.set(CURLOPT_SSL_SESSIONID_CACHE, 0)
        if !server.username.isEmpty {
            handle.set(CURLOPT_USERNAME, server.username.string)
            let password = server.password.withBytes { String(decoding: $0, as: UTF8.self) }
            handle.set(CURLOPT_PASSWORD, password)
            // The mechanisms that prove the password. Where a server offers Kerberos (GSSAPI), libcurl prefers that for
            // a user name with a domain: it would log in as the operator of this process, and fails without a ticket.
            handle.set(CURLOPT_LOGIN_OPTIONS, Self.mechanisms)
        }
    }

    private static let mechanisms = ["CRAM-MD5", "DIGEST-MD5", "NTLM", "PLAIN", "LOGIN"].map { "AUTH=\($0)" }
        .joined(separator: ";")

    private func received(_ line: UnsafeRawBufferPointer) {
        capabilities.received(line)
        if line.starts(with: "235".utf8) { isLoggedIn = true }
        // A hyphen behind the code means that more lines follow (RFC 5321 §4.2.1).
        guard answeredAt == nil, line.count > 3, line[3] != UInt8(ascii: "-") else { return }
        // Before the login, libcurl may try something else after a refusal: HELO, or another mechanism of AUTH.
        let isRefusal = capabilities.isKnown && isLoggedIn && [0x34, 0x35].contains(line[0])
        if wholeAt != nil || isRefusal { answeredAt = .now }
        isTaken = wholeAt != nil && line[0] == UInt8(ascii: "2")
    }

    /// Whether the exchange has to end now. After the answer to the mail, only the answer to QUIT is missing.
    private func mustEnd() -> Bool {
        let now = Instant.now
        if let answeredAt {
            return stopping.hasBegun || now >= min(answeredAt, end).advanced(by: times.quit)
        }
        if ending != nil { return true }
        if stopping.mustEnd(isWhole: wholeAt != nil, now: now) {
            ending = .stopped
        } else if now >= (wholeAt == nil ? sendBy : end) {
            ending = .overdue
        }
        return ending != nil
    }

    private var lacksUTF8: Bool { needsUTF8 && capabilities.isKnown && !capabilities.hasUTF8 }

    private func mayOpen(_ address: IPAddress?) -> Bool {
        let isPermitted = address.map { server.policy.permits($0, isPlaintext: server.security == .none) }
        if isPermitted != true { isAddressRefused = true }
        return isPermitted == true
    }

    private func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        message.withBytes { bytes in
            let count = min(room.count, bytes.count - sentByteCount)
            room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[sentByteCount..<sentByteCount + count]))
            sentByteCount += count
            if count == 0, wholeAt == nil { wholeAt = .now }
            return count
        }
    }

    /// Whether the server may deliver the mail although the exchange failed.
    private func isUnanswered(_ result: CURLcode) -> Bool {
        guard let wholeAt, answeredAt == nil else { return false }
        return ending != nil || result == CURLE_OPERATION_TIMEDOUT
            || Instant.now >= wholeAt.advanced(by: Self.unansweredAfter)
    }

    /// Whether the last answer refuses this mail, and not the session: a server that is being repaired, blocks this
    /// machine for a while or wants a login (530, RFC 4954 §6) takes the mail later.
    private func refusesMail(_ code: Int) -> Bool {
        capabilities.isKnown && isLoggedIn && code != 530 && (500...599).contains(code)
    }

    private func finish(_ result: CURLcode, _ handle: CurlHandle) throws(SMTPError) {
        // What is ended after this answer is only the goodbye.
        guard result != CURLE_OK, !isTaken else { return }
        if isUnanswered(result) { throw .unanswered }
        if ending == .stopped { throw .stopped }
        var code = 0
        postern_curl_get_long(handle.pointer, CURLINFO_RESPONSE_CODE, &code)
        if ending == .overdue { throw .transient(code: code, .timedOut) }
        switch result {
        case CURLE_LOGIN_DENIED: throw .notAuthenticated
        case CURLE_OPERATION_TIMEDOUT: throw .transient(code: code, .timedOut)
        case CURLE_COULDNT_RESOLVE_HOST: throw .transient(code: 0, .cannotResolve)
        case CURLE_COULDNT_CONNECT:
            throw .transient(code: 0, isAddressRefused ? .addressNotAllowed : .cannotConnect)
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_USE_SSL_FAILED, CURLE_SSL_CACERT_BADFILE:
            throw .transient(code: code, .untrusted)
        default:
            if lacksUTF8 { throw .noInternationalMail }
            if refusesMail(code) { throw .permanent(code: code) }
            throw .transient(code: code, .broken)
        }
    }
}
