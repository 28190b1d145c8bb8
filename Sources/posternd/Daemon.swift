import Base
import Cluster
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
    /// Serves until SIGTERM, SIGINT or SIGQUIT; a second signal ends the process at once.
    static func serve(_ configuration: Configuration) throws {
        prepareProcess()
        ProcessMemory.configure(loops: configuration.effectiveThreads)
        let log = Log(level: Log.Level.allCases.first { $0.name == configuration.logLevel } ?? .info)
        defer { log.close() }
        let addresses = try Addresses(configuration)
        let backups = try BackupDirectory(configuration)
        let calls = try configuration.callLog(log)
        defer { calls.sink?.close() }
        let tls = try configuration.makeTLS(log: log)
        let instance = try makeInstanceOnceTheJournalAnswers(configuration, log: log, calls: calls)
        let (door, keeper) = try start(instance, at: addresses, configuration, tls, log)
        let reloader = tls.map { CertificateReloader($0) }
        let stop = StopSignal(
            loop: instance.loops.loops[0], timeout: .seconds(configuration.drainTimeoutSeconds), log: log,
            onHangup: Self.onHangup(calls.sink?.reopen, reloader?.reload))
        door.open()
        let schedule = backups.map { BackupSchedule(instance.project.backups, to: $0, log: log) }
        let manager = ServiceManager(environment: processEnvironment(), log: log)
        manager.serving(at: door.description)
        manager.watch(instance.loops.loops)
        logServing(configuration, door, log)
        stop.wait()
        log.notice("stopping", [:])
        // Three seconds more than `StopSignal` gives it.
        manager.stopping(within: configuration.drainTimeoutSeconds + StopSignal.grace.components.seconds + 3)
        door.closeToCalls()
        try? waitFor { await instance.drain() }
        schedule?.stop()
        keeper?.stop()
        door.closeToProbes()
        stop.cancel()
        reloader?.stop()
        instance.close()
        log.notice("stopped", [:])
    }

    /// The server's ports, which are not open yet, and its cluster keeper, if it is in a cluster.
    private static func start(
        _ instance: Instance, at addresses: Addresses, _ configuration: Configuration, _ tls: ServerTLS?, _ log: Log
    ) throws -> (FrontDoor, ClusterKeeper?) {
        var door: FrontDoor?
        do {
            let made = try FrontDoor(to: instance, at: addresses, configuration, tls: tls, log: log)
            door = made
            _ = try waitFor {
                try await instance.start(keepingFirstAdminKey: DataDirectory(configuration).adminKeyFile(log))
            }
            return (made, try ClusterJoining(configuration).keep(instance, at: made.description, log))
        } catch {
            // In the order of a stop: the listeners close on the instance's loops.
            door?.closeToCalls()
            door?.closeToProbes()
            instance.close()
            throw error
        }
    }

    /// The action for both at SIGHUP; nil if there is neither.
    private static func onHangup(
        _ first: (@Sendable () -> Void)?, _ second: (@Sendable () -> Void)?
    ) -> (@Sendable () -> Void)? {
        guard first != nil || second != nil else { return nil }
        return {
            first?()
            second?()
        }
    }

    private static func logServing(_ configuration: Configuration, _ door: FrontDoor, _ log: Log) {
        log.notice(
            "serving",
            [
                "version": .text(version), "address": .text(door.description),
                "http_address": .text(door.httpAddress),
                "tls": .text(configuration.hasTLS ? configuration.tlsMinVersion : "off"),
                "project": .text(configuration.projectID),
            ])
    }

    /// A node of a cluster has to ask the journal before it can open its store, and waits for the engine.
    private static func makeInstanceOnceTheJournalAnswers(
        _ configuration: Configuration, log: Log, calls: CallLog.Configuration
    ) throws -> Instance {
        // Made once, because a limit that is lower than usual has a line in the log, and there is a try each second.
        let limits = makeLimits(configuration, log: log)
        var isSaid = false
        while true {
            do {
                return try makeInstance(configuration, limits: limits, log: log, calls: calls)
            } catch StoreError.journal(let trouble) where trouble.isNodeBehind || trouble == .outcomeUnknown {
                // If an outcome is unknown, the next try finds in the journal whether the step was made.
                if !isSaid {
                    let reason = try configuration.journalAddress()?.trouble(timeout: .seconds(5))
                    log.warning(
                        "waiting for the engine of the journal, which does not answer",
                        ["error": .text(reason ?? "\(trouble)")])
                }
                isSaid = true
                sleep(1)
            }
        }
    }

    /// Opens the store of the data directory and makes everything over it. `configure` may change how it is opened.
    static func makeInstance(
        _ configuration: Configuration, limits: Limits? = nil, log: Log,
        calls: CallLog.Configuration = CallLog.Configuration(), mustExist: Bool = false,
        configure: (inout StoreConfiguration) -> Void = { _ in }
    ) throws -> Instance {
        let directory = DataDirectory(configuration)
        let lock = try directory.lock(for: mustExist ? .changing : .making)
        if !mustExist, let address = try configuration.journalAddress() {
            try ClusterJoining(configuration).joinIfEmpty(address, log)
        }
        let masterKey = try directory.masterKey(mustExist: mustExist)
        var project = Project.Configuration(
            projectID: Text(configuration.projectID), issuer: Text(configuration.effectiveIssuer))
        project.actionURL = Text(configuration.effectiveActionURL)
        project.signingAlgorithm = SigningAlgorithm(rawValue: configuration.signingAlgorithm) ?? .rs256
        project.signingKeyPeriod = .days(configuration.signingKeyRotationDays)
        var made = Instance.Configuration(
            dataDirectory: configuration.dataDirectory, project: project, random: .system)
        made.store = directory.storeConfiguration(lock)
        made.threads = configuration.effectiveThreads
        made.passwordWorkers = configuration.effectivePasswordWorkers
        made.limits = limits ?? makeLimits(configuration, log: log)
        made.outboundCAFile = configuration.outboundCAFile
        made.acceptsClock = configuration.acceptsClock
        made.version = Text(version)
        made.calls = calls
        try made.useJournal(of: configuration, masterKey)
        configure(&made.store)
        return try directory.explaining {
            try Instance(made, masterKey: masterKey, log: log) { error in
                log.error("the store failed, the process ends", ["error": .text("\(directory.explained(error))")])
                log.close()
                _exit(error.isBeyondRestarts ? StoreRefusal.exitStatus : 70)
            }
        }
    }

    private static func makeLimits(_ configuration: Configuration, log: Log) -> Limits {
        var limits = Limits()
        limits.setConnections(configuration, descriptors: Descriptors.raise(), log: log)
        limits.fitIntoMemory(log: log)
        limits.idleTimeout = .seconds(configuration.idleTimeoutSeconds)
        limits.keepaliveInterval = .seconds(configuration.keepaliveSeconds)
        limits.drainTimeout = .seconds(configuration.drainTimeoutSeconds)
        return limits
    }

    /// Keeps the files that the server makes from other users, and lets it get its signals.
    private static func prepareProcess() {
        umask(0o077)
        // A supervisor may start us with signals blocked, which a process inherits: SIGTERM must arrive.
        var nothing = sigset_t()
        sigemptyset(&nothing)
        pthread_sigmask(SIG_SETMASK, &nothing, nil)
        Signals.ignoreOthers()
    }
}

extension Instance.Configuration {
    fileprivate mutating func useJournal(of configuration: Configuration, _ masterKey: MasterKey) throws {
        guard let address = try configuration.journalAddress() else { return }
        limits.journal.whenBehind = WhenBehind(rawValue: configuration.whenBehind) ?? .refuse
        store.journal = PostgreSQLJournal(address, masterKey: masterKey, random: .system, limits: limits)
        // Acknowledged writes are on the engine's disk; this store can read them there again.
        store.durability = .relaxed
    }
}

extension Configuration {
    /// The TLS of the ports, from its files; nil if there are none.
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
