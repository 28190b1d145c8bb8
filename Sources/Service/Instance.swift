public import Base
public import Crypto
public import Identity
import Outbound
public import Reactor
public import Store
import Synchronization
public import Transport

/// One running server, put together: store, loops, pools, project, router, connections, side port.
///
/// posternd makes one from its configuration, a test as many as it likes. Making, starting and stopping an instance
/// blocks, so do it on a thread of your own. Only the calls do not block.
public final class Instance: Sendable {
    public struct Configuration: Sendable {
        public var store: StoreConfiguration
        public var project: Project.Configuration
        public var threads = EventLoopGroup.coreCount
        public var passwordWorkers = EventLoopGroup.coreCount
        public var limits = Limits()
        /// PEM certificates to trust instead of the system's when other servers are asked; empty = the system's.
        public var outboundCAFile = ""
        public var version: Text = "0.0.0"
        public var calls = CallLog.Configuration()
        public var clocks = MachineClocks.system
        /// The operator says that the machine's clock is right, whatever the store's mark.
        public var acceptsClock = false
        public var random: RandomSource

        public init(dataDirectory: String, project: Project.Configuration, random: RandomSource) {
            self.store = StoreConfiguration(directory: dataDirectory, tables: Tables.all)
            self.project = project
            self.random = random
        }

        fileprivate func store(log: Log) -> StoreConfiguration {
            var store = store
            store.onCopyFailure = { copy, error in
                log.error(
                    "what is in memory is older than the store",
                    ["copy": .text("\(copy)"), "error": .text("\(error)")])
            }
            store.limits = limits
            store.migrations = Migration.domain
            return store
        }

        /// Never less than the memory that our own hashes need on all workers.
        fileprivate var passwordMemoryMax: Int {
            max(limits.passwordMemoryMax, passwordWorkers * project.passwordProfile.work.memoryByteCount)
        }
    }

    public let project: Project
    public let health = HealthStatus()
    /// The metrics of the side port, which the owner of the instance opens.
    public let httpMetrics = HTTPServerMetrics()
    public let server: Server
    public let loops: EventLoopGroup
    let version: Text
    let startedAt: Timestamp
    let router: Router
    let passwordPool: WorkerPool
    let signingPool: WorkerPool
    let outboundPool: WorkerPool
    let nameLookups: NameLookups
    private let smtp: SMTPClient
    let outboxGauges = OutboxGauges()
    private let sweeper: Sweeper
    private let credentialWatch: CredentialWatch

    /// Opens the store and makes all parts of the server. Nothing is served yet. `onFatal` is called when the store
    /// cannot be trusted any more and the process should end.
    public init(
        _ configuration: Configuration, masterKey: MasterKey, log: Log,
        onFatal: @escaping @Sendable (StoreError) -> Void
    ) throws(StoreError) {
        let limits = configuration.limits
        var storeConfiguration = configuration.store(log: log)
        let time = ServerClock(configuration.clocks)
        (storeConfiguration.timeMark, storeConfiguration.clock) = ({ time.mark }, time.clock)
        let signingPool = configuration.makeSigningPool()
        self.signingPool = signingPool
        // Changes committed while signatures queue would only queue. Half of that time, so that no signer idles.
        storeConfiguration.spareTime = { signingPool.backlog / 2 }
        storeConfiguration.onTrouble = { [health] in health.note($0, log: log) }
        let (store, mark, epoch): (Store, Timestamp?, [UInt8])
        do throws(StoreError) {
            (store, mark, epoch) = try Self.openStore(storeConfiguration, masterKey, health, onFatal)
        } catch {
            signingPool.close()
            throw error
        }
        let loops = EventLoopGroup(count: configuration.threads)
        (self.passwordPool, self.outboundPool) = (configuration.makePasswordPool(), configuration.makeOutboundPool())
        self.nameLookups = NameLookups(countMax: limits.outboundLookupsMax)
        let (http, smtp) = configuration.makeClients(outboundPool, nameLookups)
        var resources = Resources(
            store: store, time: time, random: configuration.random, limits: limits, log: log)
        let notice = time.begin(mark: mark, acceptsWall: configuration.acceptsClock)
        if configuration.acceptsClock { resources.acceptedClockOver = mark }
        (self.startedAt, self.version, self.smtp) = (resources.clock.now(), configuration.version, smtp)
        let pools = Project.Pools(password: passwordPool, signing: signingPool, blocking: outboundPool)
        self.project = Project(
            configuration: configuration.project, resources: resources, masterKey: masterKey, epoch: epoch,
            loops: loops, pools: pools, http: http, smtp: smtp)
        if let notice { project.log(notice) }
        self.router = Router(
            project: project, health: health, version: configuration.version, calls: configuration.calls, log: log)
        self.server = Server(
            loops: loops, dispatcher: router, limits: limits, log: log, software: configuration.software,
            lastConnectionID: configuration.drawnConnectionID())
        self.loops = loops
        self.credentialWatch = CredentialWatch(router: router, server: server, loop: loops.loops[0])
        self.sweeper = Sweeper(project, health: health, callerUse: router.callerUse, log: log, loop: loops.loops[0])
        router.serve(makeSidePortRoutes())
        loops.start()
    }

    /// The pages of the side port by their paths.
    public var sidePortRoutes: HTTPServer.Routes { router.pages.withLock { $0 } }

    /// The store, the highest time that it has seen, and its epoch.
    private static func openStore(
        _ configuration: StoreConfiguration, _ masterKey: MasterKey, _ health: HealthStatus,
        _ onFatal: @escaping @Sendable (StoreError) -> Void
    ) throws(StoreError) -> (Store, Timestamp?, [UInt8]) {
        let store = try Store(
            configuration, authenticator: RecordMACs(masterKey: masterKey), eventHash: RecordMACs.eventHash,
            onFatal: { error in
                health.set(isServing: false)
                onFatal(error)
            })
        do throws(StoreError) {
            return (store, try store.timeMark(), try store.epoch())
        } catch {
            store.close()
            throw error
        }
    }

    /// Makes what an empty store lacks, then serves. Returns the first admin key if one was made, which `keeper` keeps.
    public func start(keepingFirstAdminKey keeper: (any SecretKeeper)? = nil) async throws -> Secret? {
        let firstAdminKey = try await project.start(keepingFirstAdminKey: keeper)
        sweeper.start()
        credentialWatch.start()
        await project.mailer.start()
        health.set(isServing: true)
        return firstAdminKey
    }

    /// Stops in good order: not serving, clients told, calls in flight finished, everything written.
    public func drain() async {
        health.set(isServing: false)
        sweeper.stop()
        credentialWatch.stop()
        await project.mailer.stop()
        // A second before the drain ends: an exchange notices the end within a second.
        let limit = max(.zero, project.resources.limits.drainTimeout - .seconds(1))
        smtp.stop(awaitingAnswersUntil: .now.advanced(by: limit))
        await server.drain()
        await project.guesses.stop()
        await project.leases.giveBack()
    }

    /// Ends the threads and closes the store; after `drain`, or at once.
    @available(*, noasync, message: "blocks the thread")
    public func close() {
        credentialWatch.stop()
        passwordPool.close()
        signingPool.close()
        smtp.stop(awaitingAnswersUntil: .now)
        outboundPool.close()
        loops.stop()
        loops.join()
        project.store.close()
    }
}

extension Instance.Configuration {
    /// A number whose upper half no other start of a server has, except by chance.
    fileprivate func drawnConnectionID() -> UInt64 { random.bytes(4).bigEndianNumber << 32 }

    /// A tenant's requests and mails share its lookups, because they share the threads.
    fileprivate func makeClients(_ pool: WorkerPool, _ lookups: NameLookups) -> (HTTPClient, SMTPClient) {
        let pool = OutboundPool(pool, waitMax: limits.outboundWaitMax)
        return (
            HTTPClient(pool: pool, lookups: lookups, certificateFile: certificateFile),
            SMTPClient(pool: pool, lookups: lookups, certificateFile: certificateFile)
        )
    }

    fileprivate var software: Text { Text("postern/\(version)") }

    fileprivate var certificateFile: String? { outboundCAFile.isEmpty ? nil : outboundCAFile }

    fileprivate func makeSigningPool() -> WorkerPool {
        WorkerPool(
            name: "signing", workers: EventLoopGroup.coreCount, queueMax: limits.signingQueueMax,
            queueMaxPerTenant: limits.signingQueuePerTenantMax, priority: .lowered(by: 5))
    }

    fileprivate func makeOutboundPool() -> WorkerPool {
        WorkerPool(
            name: "outbound", workers: limits.outboundWorkers, queueMax: limits.blockingQueueMax,
            queueMaxPerTenant: limits.outboundWaitingPerTenantMax,
            workersPerTenantMax: limits.outboundRequestsPerTenantMax, priority: .lowered(by: 5))
    }

    /// Hashes give way to the loops: a hash takes 5 ms, a lookup 10 µs.
    fileprivate func makePasswordPool() -> WorkerPool {
        WorkerPool(
            name: "password", workers: passwordWorkers, queueMax: limits.passwordQueueMax,
            queueMaxPerTenant: limits.passwordQueuePerTenantMax, memoryMax: passwordMemoryMax,
            priority: .spare(exceptFirst: 4, andLong: 10),
            idling: PasswordArena.idling(restAfter: limits.passwordArenaKept))
    }
}
