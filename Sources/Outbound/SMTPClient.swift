public import Base
import CCurl

/// A mail server and how to connect to it.
public struct SMTPServer: Sendable {
    public enum Security: Sendable {
        /// STARTTLS (RFC 3207). Without TLS, no mail is sent.
        case startTLS
        /// TLS from the first byte (RFC 8314).
        case tls
        /// Clear text, to this machine only, and if the policy permits that.
        case none
    }

    public var host: Text
    public var port: UInt16
    public var security: Security
    /// Empty = no authentication.
    public var username: Text
    public var password: Secret
    public var policy: NetworkPolicy

    public init(
        host: Text, port: UInt16, security: Security, username: Text, password: Secret, policy: NetworkPolicy
    ) {
        self.host = host
        self.port = port
        self.security = security
        self.username = username
        self.password = password
        self.policy = policy
    }
}

/// The reason why a mail was not sent. Holds nothing of the server's answers.
public enum SMTPError: Error, Sendable, Equatable {
    /// The server was not reached, broke off, or refused the mail for now (4yz): worth another attempt.
    case transient(code: Int, OutboundError?)
    /// The server refused the mail for good (5yz).
    case permanent(code: Int)
    /// The server does not take the user name and password.
    case notAuthenticated
    /// An address is not ASCII, and the server does not offer SMTPUTF8 (RFC 6531).
    case noInternationalMail
}

/// Sends mail to a server over SMTP (RFC 5321), on the pool's threads. Any thread.
public final class SMTPClient: Sendable {
    private let pool: OutboundPool
    private let lookups: NameLookups
    private let certificateFile: String?

    /// The longest time for one mail, from looking up the server's name to the server's answer to the mail.
    static let timeout = Duration.seconds(30)
    /// How long the server's answer to QUIT is waited for. It changes nothing. libcurl looks at it once a second.
    static let quitTimeout = Duration.seconds(2)
    /// The longest time for looking up the server's name, and again for connecting.
    static let connectTimeout = Duration.seconds(10)

    /// `lookups`: shared by all clients of the pool.
    public init(
        pool: OutboundPool, lookups: NameLookups = NameLookups(), certificateFile: String? = nil
    ) {
        self.pool = pool
        self.lookups = lookups
        self.certificateFile = certificateFile
    }

    /// Sends `message`, which includes its header, from one mailbox to another.
    ///
    /// - Throws: `SMTPError`. The server was not asked: `OutboundError.overloaded`; the pool's error if it is full or
    ///   closed or the deadline passes; `CancellationError`.
    public func send(
        _ message: Secret, from sender: Text, to recipient: Text, through server: SMTPServer, tenant: Text,
        deadline: Instant
    ) async throws {
        try await pool.run(tenant: tenant, deadline: deadline, isPatient: true) { [self] in
            try SMTPExchange(message, from: sender, to: recipient, server).perform(
                certificateFile: certificateFile, deadline: deadline
            ) { try addresses(of: server.host, tenant: tenant, within: $0) }
        }
    }

    private func addresses(of host: Text, tenant: Text, within limit: Duration) throws -> [IPAddress] {
        do throws(OutboundError) {
            return try lookups.addresses(of: host, tenant: tenant, within: limit)
        } catch {
            if error == .overloaded { throw error }
            throw SMTPError.transient(code: 0, error)
        }
    }
}

/// One mail on a worker thread; libcurl's callbacks come on the same thread, inside of `curl_easy_perform`.
private final class SMTPExchange {
    private let message: Secret
    private let server: SMTPServer
    private var sentByteCount = 0
    /// Whether libcurl has got the end of the message.
    private var isWhole = false
    /// Whether the server took the user name and password, or there is no user name.
    private var isLoggedIn: Bool
    /// When the answer came that decides about the mail: to the whole message, or a refusal before.
    private var answeredAt: Instant?
    /// When the time for the mail is over, except for QUIT.
    private var end = Instant.now
    private var isAddressRefused = false
    /// Whether an address is not ASCII. libcurl asks for SMTPUTF8 if the server offers it, and goes on if it does not.
    private let needsUTF8: Bool
    private var capabilities = SMTPCapabilities()
    private let sender: Text
    private let recipient: Text

    init(_ message: Secret, from sender: Text, to recipient: Text, _ server: SMTPServer) {
        self.message = message
        self.server = server
        self.sender = sender
        self.recipient = recipient
        self.isLoggedIn = server.username.isEmpty
        self.needsUTF8 = (sender.bytes + recipient.bytes).contains { $0 >= 0x80 }
    }

    /// `lookUp` finds the addresses of the mail server within the time that it is given.
    func perform(
        certificateFile: String?, deadline: Instant, lookUp: (Duration) throws -> [IPAddress]
    ) throws {
        let remaining = min(SMTPClient.timeout, .nanoseconds(deadline.nanoseconds(since: .now)))
        guard remaining > .zero else { throw SMTPError.transient(code: 0, .timedOut) }
        let handle = CurlHandle()
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
                defer { curl_easy_reset(handle.pointer) }
                configure(handle, recipients: recipients)
                end = Instant.now.advanced(by: remaining)
                handle.check(postern_curl_set_opener(handle.pointer, opener), CURLOPT_OPENSOCKETFUNCTION)
                setCallbacks(handle, context)
                let code = try handle.perform(
                    port: server.port, timeout: remaining, connectTimeout: SMTPClient.connectTimeout, lookUp: lookUp)
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
        // libcurl's own limits do not hold for its QUIT: it would wait 120 seconds for the answer (libcurl 7.88.1).
        handle.check(
            postern_curl_set_progress(
                handle.pointer,
                { context, _, _, _, _ in
                    guard let context else { return 1 }
                    return Unmanaged<SMTPExchange>.fromOpaque(context).takeUnretainedValue().isOverdue ? 1 : 0
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
        if isWhole || isRefusal { answeredAt = .now }
    }

    /// Whether nothing but the answer to QUIT can be missing, and the server had its time for that.
    private var isOverdue: Bool {
        let quitBegan = min(answeredAt ?? end, end)
        return Instant.now >= quitBegan.advanced(by: SMTPClient.quitTimeout)
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
            if count == 0 { isWhole = true }
            return count
        }
    }

    private func finish(_ result: CURLcode, _ handle: CurlHandle) throws(SMTPError) {
        guard result != CURLE_OK else { return }
        var code = 0
        postern_curl_get_long(handle.pointer, CURLINFO_RESPONSE_CODE, &code)
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
            if (500...599).contains(code) { throw .permanent(code: code) }
            throw .transient(code: code, .broken)
        }
    }
}
