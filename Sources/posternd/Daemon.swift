import Base
import Crypto
import Glibc
import Identity
import Messages
import Reactor
import Service
import Store
import Synchronization
import TLS
import Transport

/// Runs a server from a configuration: files and process around an `Instance`.
enum Daemon {
    /// Serves until SIGTERM, SIGINT or SIGQUIT; a second one ends at once.
    static func serve(_ configuration: Configuration) throws {
        hardenProcess()
        ProcessMemory.configure(loops: configuration.effectiveThreads)
        let log = Log(level: Log.Level.allCases.first { $0.name == configuration.logLevel } ?? .info)
        defer { log.close() }
        let addresses = try Addresses(configuration)
        let backups = try BackupDirectory(configuration)
        let calls = try configuration.callLog(log)
        defer { calls.sink?.close() }
        let tls = try configuration.makeTLS(log: log)
        let instance = try makeInstance(configuration, log: log, calls: calls)
        let (listener, sidePort): (Listener, SidePort?)
        do {
            listener = try instance.server.listen(addresses.rpc, tls: tls)
            sidePort = try addresses.http.map { try SidePort(instance, $0) }
            _ = try waitFor {
                try await instance.start(keepingFirstAdminKey: DataDirectory(configuration).adminKeyFile(log))
            }
        } catch {
            instance.close()
            if let error = error as? StoreError { throw DataDirectory(configuration).explained(error) }
            throw error
        }
        let reloader = tls.map { CertificateReloader($0) }
        let stop = StopSignal(
            loop: instance.loops.loops[0], timeout: .seconds(configuration.drainTimeoutSeconds), log: log,
            onHangup: Self.onHangup(calls.sink?.reopen, reloader?.reload))
        listener.start()
        let schedule = backups.map { BackupSchedule(instance.project.backups, to: $0, log: log) }
        let manager = ServiceManager(environment: processEnvironment(), log: log)
        manager.serving(at: "\(listener.address)")
        manager.watch(instance.loops.loops)
        logServing(configuration, at: listener.address, http: sidePort?.address, log)
        stop.wait()
        log.notice("stopping", [:])
        manager.stopping()
        listener.close()
        try? waitFor { await instance.drain() }
        schedule?.stop()
        sidePort?.close()
        stop.cancel()
        reloader?.stop()
        instance.close()
        log.notice("stopped", [:])
    }

    /// What both want at SIGHUP; nil without either.
    private static func onHangup(
        _ first: (@Sendable () -> Void)?, _ second: (@Sendable () -> Void)?
    ) -> (@Sendable () -> Void)? {
        guard first != nil || second != nil else { return nil }
        return {
            first?()
            second?()
        }
    }

    private static func logServing(
        _ configuration: Configuration, at address: SocketAddress, http: SocketAddress?, _ log: Log
    ) {
        log.notice(
            "serving",
            [
                "version": .text(version), "address": .text("\(address)"),
                "http_address": .text(http.map { "\($0)" } ?? "off"),
                "tls": .text(configuration.hasTLS ? configuration.tlsMinVersion : "off"),
                "project": .text(configuration.projectID),
            ])
    }

    /// Opens the store of `directory` and makes everything over it. `configure` may change how.
    static func makeInstance(
        _ configuration: Configuration, log: Log, calls: CallLog.Configuration = CallLog.Configuration(),
        mustExist: Bool = false,
        configure: (inout StoreConfiguration) -> Void = { _ in }
    ) throws -> Instance {
        let directory = DataDirectory(configuration)
        let lock = try directory.lock(mustExist: mustExist)
        let masterKey = try directory.masterKey(mustExist: mustExist)
        var project = Project.Configuration(
            projectID: Text(configuration.projectID), issuer: Text(configuration.effectiveIssuer))
        project.actionURL = Text(configuration.effectiveActionURL)
        project.signingAlgorithm = SigningAlgorithm(rawValue: configuration.signingAlgorithm) ?? .rs256
        var made = Instance.Configuration(
            dataDirectory: configuration.dataDirectory, project: project, random: .system)
        made.store = directory.storeConfiguration(lock)
        configure(&made.store)
        made.threads = configuration.effectiveThreads
        made.passwordWorkers = configuration.effectivePasswordWorkers
        made.limits.setConnections(configuration, descriptors: Descriptors.raise(), log: log)
        made.limits.idleTimeout = .seconds(configuration.idleTimeoutSeconds)
        made.limits.drainTimeout = .seconds(configuration.drainTimeoutSeconds)
        made.outboundCAFile = configuration.outboundCAFile
        made.acceptsClock = configuration.acceptsClock
        made.version = Text(version)
        made.calls = calls
        do {
            return try Instance(made, masterKey: masterKey, log: log) { error in
                log.error("the store failed, the process ends", ["error": .text("\(error)")])
                log.close()
                _exit(70)
            }
        } catch {
            throw directory.explained(error)
        }
    }

    /// No core files and no reading of our memory by others of the same user: both would show keys.
    static func hardenProcess() {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        umask(0o077)
        // A supervisor may start us with signals blocked, which a process inherits: SIGTERM must arrive.
        var nothing = sigset_t()
        sigemptyset(&nothing)
        pthread_sigmask(SIG_SETMASK, &nothing, nil)
        Signals.ignoreOthers()
    }
}

/// Where to listen, checked: beyond loopback only when the operator said that clear text is fine.
private struct Addresses {
    let rpc: SocketAddress
    let http: SocketAddress?

    init(_ configuration: Configuration) throws {
        self.rpc = try Self.parse(
            configuration.listenAddress, "listen_address", configuration, mayBeRemote: configuration.hasTLS)
        self.http =
            configuration.httpAddress == "off"
            ? nil : try Self.parse(configuration.httpAddress, "http_address", configuration)
    }

    private static func parse(
        _ text: String, _ key: String, _ configuration: Configuration, mayBeRemote: Bool = false
    ) throws -> SocketAddress {
        guard let address = SocketAddress(text) else {
            throw ConfigurationError(
                description: "\(key): \"\(text)\" is not address:port, for example 127.0.0.1:7400 or [::1]:7400")
        }
        guard address.isLoopback || configuration.allowPlaintext || mayBeRemote else {
            throw ConfigurationError(
                description: "\(key): \(text) is reachable from other machines and there is no TLS; "
                    + "bind to loopback, or say --allow-plaintext if the network is yours")
        }
        return address
    }
}

extension Configuration {
    /// The TLS of the RPC port, from its files; nil without any.
    fileprivate func makeTLS(log: Log) throws -> ServerTLS? {
        guard hasTLS else { return nil }
        var settings = ServerTLS.Settings(certificateFile: tlsCertificateFile, keyFile: tlsKeyFile)
        settings.minimumVersion = TLSVersion(rawValue: tlsMinVersion) ?? .tls13
        settings.clientCAFile = tlsClientCAFile
        settings.clientCRLFile = tlsClientCRLFile
        settings.isRequired = tlsRequired
        settings.allowsPlaintext = allowPlaintext
        do throws(TLSError) {
            return try ServerTLS(settings, limits: Limits(), log: log)
        } catch {
            throw ConfigurationError(description: "TLS: \(error)")
        }
    }
}

/// Runs async work from the main thread and waits for it.
func waitFor<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws -> Value {
    let done = Semaphore()
    let outcome = Mutex<Result<Value, any Error>?>(nil)
    Task {
        let result: Result<Value, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        outcome.withLock { $0 = result }
        done.signal()
    }
    done.wait()
    guard let result = outcome.withLock({ $0 }) else { preconditionFailure("async work ended without a result") }
    return try result.get()
}

/// The HTTP port, on a loop of its own: a scrape must not hold up calls.
private final class SidePort {
    let address: SocketAddress
    private let loop = EventLoop(name: "http")
    private let server: HTTPServer

    init(_ instance: Instance, _ wanted: SocketAddress) throws {
        server = try HTTPServer(
            on: loop, address: wanted.host, port: wanted.port, routes: instance.sidePortRoutes,
            limits: instance.project.limits, metrics: instance.httpMetrics)
        address = SocketAddress(host: wanted.host, port: server.port) ?? wanted
        loop.start()
    }

    func close() {
        loop.stop()
        loop.join()
        server.close()
    }
}
