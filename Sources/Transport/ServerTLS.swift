public import Base
import Glibc
import Synchronization
public import TLS

/// The TLS of the ports: its files, the contexts in use now, and which peers may speak plain text. Any thread.
///
/// New connections use the files as they were when last read and found good; older connections keep what they began
/// with.
public final class ServerTLS: Sendable {
    public struct Settings: Sendable {
        public var certificateFile: String
        public var keyFile: String
        public var minimumVersion = TLSVersion.tls13
        /// The files of the authorities for client certificates, and of their revocations. If the first is empty,
        /// clients are not asked for a certificate.
        public var clientCAFile = ""
        public var clientCRLFile = ""
        /// Refuses plain text from this machine, too.
        public var isRequired = false
        /// Takes plain text from other machines, too.
        public var allowsPlaintext = false

        public init(certificateFile: String, keyFile: String) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }

        var files: [String] { [certificateFile, keyFile, clientCAFile, clientCRLFile].filter { !$0.isEmpty } }
    }

    /// The port by which a connection came in.
    enum Port: Sendable { case rpc, http }

    /// A context for each port, made from the same files.
    private struct Contexts {
        let rpc: TLSContext
        let http: TLSContext
        let keyBitCount: Int

        subscript(port: Port) -> TLSContext { port == .rpc ? rpc : http }
    }

    public let metrics = TLSMetrics()
    private let settings: Settings
    private let limits: Limits
    private let log: Log

    private struct State {
        var contexts: Contexts
        /// The stamps of the files when they were last read, whether the files were good or not.
        var stamps: [FileStamp?]
        /// Nil while the files are good.
        var fault: Fault?
        /// For warnings about proxies that are missing in proxy_protocol_from.
        var proxyWarnings = LogThrottle()
    }

    /// Why the files were no good when they were last read, and when they are read again, changed or not: an error of
    /// the moment, such as EMFILE or EIO, leaves no trace in their stamps.
    private struct Fault {
        let reason: String
        let retryAt: Instant
    }
    private static let retryAfter = Duration.seconds(30)

    private let state: Mutex<State>

    /// Reads the files. Throws what is wrong with them.
    public init(_ settings: Settings, limits: Limits, log: Log) throws(TLSError) {
        self.settings = settings
        self.limits = limits
        self.log = log
        let stamps = settings.files.map { FileStamp($0) }
        let contexts = try Self.load(settings, limits)
        let context = contexts.rpc
        state = Mutex(State(contexts: contexts, stamps: stamps))
        metrics.certificateExpiry.set(context.certificate?.expiresAt ?? 0)
        if context.certificate?.isNotYetValid == true {
            log.warning("the TLS certificate is not valid yet, by this machine's clock", [:])
        }
        Self.warnOfSlowKey(contexts, log)
    }

    private static func load(_ settings: Settings, _ limits: Limits) throws(TLSError) -> Contexts {
        let certificate = try TLSFile.read(settings.certificateFile, byteCountMax: limits.tlsFileMax, isSecret: false)
        let key = try TLSFile.read(settings.keyFile, byteCountMax: limits.tlsFileMax, isSecret: true)
        let credential: TLSCredential
        do throws(TLSError) {
            credential = try TLSCredential(certificatePEM: certificate, keyPEM: key)
        } catch {
            throw TLSError("\(settings.certificateFile), \(settings.keyFile): \(error)")
        }
        var configuration = ServerTLSConfiguration(
            credential: credential, certificateListByteCountMax: limits.tlsCertificateListMax)
        configuration.minimumVersion = settings.minimumVersion
        var httpConfiguration = configuration
        httpConfiguration.protocols = [.http1]
        configuration.clients = try clients(settings, limits)
        return Contexts(
            rpc: try TLSContext(configuration), http: try TLSContext(httpConfiguration),
            keyBitCount: credential.key.bitCount)
    }

    /// A handshake with a larger RSA key takes an event loop several milliseconds; with ECDSA, a tenth of one.
    private static let keyBitCountExpected = 3_072

    private static func warnOfSlowKey(_ contexts: Contexts, _ log: Log) {
        guard contexts.keyBitCount > keyBitCountExpected else { return }
        log.warning(
            "the TLS certificate has a large RSA key, which makes handshakes slow for all; take an ECDSA key",
            ["bits": .integer(Int64(contexts.keyBitCount))])
    }

    private static func clients(_ settings: Settings, _ limits: Limits) throws(TLSError) -> ClientTrust? {
        guard !settings.clientCAFile.isEmpty else { return nil }
        let lists = settings.clientCRLFile.isEmpty ? [] : try revocationLists(settings.clientCRLFile, limits)
        let authorities = try TLSFile.read(settings.clientCAFile, byteCountMax: limits.tlsFileMax, isSecret: false)
        do throws(TLSError) {
            return try ClientTrust(authoritiesPEM: authorities, revocationLists: lists)
        } catch {
            throw TLSError("\(settings.clientCAFile): \(error)")
        }
    }

    private static func revocationLists(_ file: String, _ limits: Limits) throws(TLSError) -> [RevocationList] {
        let pem = try TLSFile.read(file, byteCountMax: limits.tlsFileMax, isSecret: false)
        do throws(TLSError) {
            return try RevocationList.all(pem: pem)
        } catch {
            throw TLSError("\(file): \(error)")
        }
    }

    /// Reads the files again. With `onlyIfChanged`, only if one of them has changed since the last time, or if they
    /// were faulty half a minute ago. If they are faulty, the fault is counted, and the former contexts stay in use.
    /// The log gets a line unless the files are unchanged and the fault is the same. Blocks while it reads.
    @available(*, noasync, message: "reads files")
    public func reload(onlyIfChanged: Bool, now: Instant = .now) {
        let stamps = settings.files.map { FileStamp($0) }
        let (hasChanged, isRetry) = state.withLock { state in
            defer { state.stamps = stamps }
            return (state.stamps != stamps, state.fault.map { $0.retryAt <= now } ?? false)
        }
        guard hasChanged || isRetry || !onlyIfChanged else { return }
        do throws(TLSError) {
            let contexts = try Self.load(settings, limits)
            state.withLock { state in
                state.contexts = contexts
                state.fault = nil
            }
            let expiresAt = contexts.rpc.certificate?.expiresAt ?? 0
            metrics.certificateExpiry.set(expiresAt)
            metrics.reloads.add()
            log.notice("the TLS certificate was read again", ["expires_at": .integer(expiresAt)])
            Self.warnOfSlowKey(contexts, log)
        } catch {
            metrics.reloadFailures.add()
            let fault = Fault(reason: "\(error)", retryAt: now.advanced(by: Self.retryAfter))
            let isOther = state.withLock { state in
                defer { state.fault = fault }
                return state.fault?.reason != fault.reason
            }
            guard isOther || hasChanged || !onlyIfChanged else { return }
            log.error("the TLS certificate on disk is no good, the one before stays", ["error": .text("\(error)")])
        }
    }

    // MARK: Connections

    func makeSession(descriptor: Int32, on port: Port) throws(TLSError) -> TLSSession {
        try TLSSession(
            state.withLock { $0.contexts[port] }, descriptor: descriptor, keyUpdateCountMax: limits.tlsKeyUpdatesMax)
    }

    /// Plain text is for peers on this machine, whose bytes no network carries, unless the operator says otherwise. On
    /// a Unix domain socket the file's mode says who may speak, and the HTTP port has nothing to hide from this
    /// machine: `isRequired` applies to neither.
    func allowsPlaintext(from peer: Peer, on port: Port) -> Bool {
        if settings.allowsPlaintext || peer.isLocalUser { return true }
        return peer.isOnThisMachine && (!settings.isRequired || port == .http)
    }

    func refusedPlaintext(firstByte: UInt8) {
        metrics.plaintextRefused.add()
        // A load balancer that is missing in proxy_protocol_from sends this byte.
        guard firstByte == ProxyHeader.firstByte, state.withLock({ $0.proxyWarnings.admit(at: .now) }) else { return }
        log.warning(ProxyHeader.strangerWarning, [:])
    }

    func failed(_ error: TLSError, inHandshake: Bool) {
        if inHandshake { metrics.handshakesFailed.add() } else { metrics.sessionsFailed.add() }
        log.debug("a TLS connection failed", ["reason": .text("\(error)")])
    }
}

/// Counters of TLS, for /metrics.
public final class TLSMetrics: Sendable {
    public let handshakes = Counter()
    public let handshakesFailed = Counter()
    /// Sessions that failed after their handshake.
    public let sessionsFailed = Counter()
    public let plaintextRefused = Counter()
    /// When the certificate in use expires, in seconds since 1970.
    public let certificateExpiry = Gauge()
    public let reloads = Counter()
    public let reloadFailures = Counter()

    public init() {}
}
