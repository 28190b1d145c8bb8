import Base
import Glibc
import JSON
import Messages
import Synchronization

/// The connections of a load and its data, kept over several runs.
final class LoadSession {
    let options: LoadOptions
    private(set) var population: Population
    private let hashes: Hashes
    private let loops: [any Load]
    private let shares: [Range<Int>]
    /// Each thread's part of a recorded load.
    private let traces: [Trace]
    private let process: ServerProcess?
    private let host = HostInfo()
    private let serverSoftware: String
    /// Their provider answers as long as this object lives.
    private let federatedUsers: FederatedUsers?

    /// Checks that the load may be put on the tenant and that its data was seeded, and connects.
    init(_ options: LoadOptions, slotsPerLane: Int) throws {
        self.options = options
        let connection = try Connection(to: options.target.address, authorization: options.target.authorization)
        serverSoftware = connection.server.software.string
        population = try Self.population(options, over: connection)
        try Self.check(population, options, slotsPerLane: slotsPerLane)
        hashes = try Self.permission(population, options, over: connection)
        raiseFileLimit()
        process = options.target.process
        federatedUsers = try Self.federatedUsers(population, options)
        shares = Self.shares(of: population.sessions.count, among: options.threads)
        traces = options.trace.map { trace in (0..<options.threads).map { trace.share($0, of: options.threads) } } ?? []
        loops = try Self.makeLoops(
            options, population, shares, traces, federatedUsers?.idTokens ?? [], slotsPerLane: slotsPerLane)
    }

    /// Announces the run on stderr, so that results stay alone on stdout.
    func announce(_ command: String, _ plan: RunPlan) {
        let tenant =
            (population.tenantCount > 1
                ? "\(population.tenantCount) tenants of \(population.tenantName)" : "tenant \(population.tenantID)")
            + " (\(hashes.rawValue)) at \(options.target.address)"
        let how = plan.description(connections: options.connections)
        TextFile.printError("postern-bench \(command): \(options.mix.description) on \(tenant): \(how)\n")
    }

    func run(_ plan: RunPlan, _ allocations: AllocationCounter? = nil) -> RunResult {
        let start = Instant.now
        let periods = RunPeriods(
            from: start, warmup: .seconds(plan.warmup), counted: .seconds(plan.seconds),
            drain: min(plan.drain, .seconds(options.target.address.silenceSecondsMax)))
        let failure = Mutex<String?>(nil)
        for loop in loops { loop.live.begin() }
        let threads = loops.enumerated().map { index, loop in
            let pacing = pacing(plan, index)
            return OSThread(name: "load-\(index)") {
                do throws(BenchError) {
                    try loop.run(periods, pacing) { Interruption.isAsked }
                } catch {
                    failure.withLock { $0 = error.description }
                }
                loop.live.end()
            }
        }
        var samples = CPUSamples(process, periods, allocations)
        let view = LiveView(loops, plan, isShown: options.showsProgress)
        samples.take(isOver: { loops.allSatisfy { !$0.live.isRunning } }) { second in view.show(second) }
        for thread in threads { thread.join() }
        view.finish()
        for (loop, share) in zip(loops, shares) { population.sessions.replaceSubrange(share, with: loop.sessions) }
        var result = RunResult()
        result.configuration =
            options.members + plan.members + [
                .init("seed", .integer(Int64(seed))),
                .init("tenant", .string(population.tenantName)),
                .init("tenants", .integer(Int64(population.tenantCount))),
                .init("users", .integer(Int64(population.userCount))),
                .init("sessions", .integer(Int64(population.sessions.count))),
            ]
        result.host = host.members
        result.processorCount = host.processorCount
        result.serverSoftware = serverSoftware
        result.hashes = (hashes.rawValue, hashes.description)
        result.generatorThreads = options.threads
        result.isInterrupted = Interruption.isAsked
        result.failure = failure.withLock { $0 }
        result.fill(from: loops, options.mix, plan, periods, samples)
        return result
    }

    private var seed: Int { options.seed ?? population.seed }

    private func pacing(_ plan: RunPlan, _ index: Int) -> Pacing {
        switch plan.loop {
        case .closed(let inFlight, let think): return .closed(inFlight: inFlight, think: think)
        case .open(let schedule, let pattern, let outstandingMax, let whenFull):
            let arrivals =
                traces.isEmpty
                ? Arrivals(
                    schedule.warmedUp(for: Double(plan.warmup)), pattern, seed: UInt64(seed),
                    share: (index, options.threads)) : Arrivals(recorded: traces[index].events.map(\.at))
            return .open(
                arrivals, outstandingMax: max(1, outstandingMax / options.threads), whenFull: whenFull)
        }
    }

    /// Writes the sessions' newest tokens back: a session that was refreshed ends when an old token is used.
    func saveSessions() throws {
        guard let path = options.statePath, options.mix.usesSeeded(.refresh) else { return }
        try StateFile.write(population, to: path)
    }
}

// The checks before a load begins.
extension LoadSession {
    private static func population(_ options: LoadOptions, over connection: Connection) throws -> Population {
        guard let path = options.statePath else { return Population(tenantID: options.tenantID ?? "bench") }
        let population = try Population.load(path, over: connection)
        if let tenantID = options.tenantID, tenantID != population.tenantName {
            throw UsageError("--tenant \(tenantID): the state file is of \(population.tenantName)")
        }
        return population
    }

    /// Allows a load on tenants that are marked as synthetic, or that the caller says are theirs.
    private static func permission(
        _ population: Population, _ options: LoadOptions, over connection: Connection
    ) throws -> Hashes {
        let hashes = try population.originAsFound(over: connection).hashes
        let touchesTenant = options.mix.operations.contains { $0 != .health }
        guard !touchesTenant || hashes == .synthetic || options.ownsTenant else {
            throw UsageError(
                """
                tenant \(population.tenantName) is not marked as synthetic: a load may hurt its users. Make one with \
                `postern-bench seed --hashes synthetic`, or say --i-own-this
                """)
        }
        return hashes
    }

    /// Checks that the data that the mix needs was seeded.
    private static func check(_ population: Population, _ options: LoadOptions, slotsPerLane: Int) throws {
        func require(_ operations: [Operation], _ holds: Bool, _ flag: String) throws {
            guard !holds, let operation = operations.first(where: { options.mix.usesSeeded($0) }) else { return }
            throw BenchError(.notReady, "\(operation.name) needs a --state file of `postern-bench seed` with \(flag)")
        }
        let reads = options.mix.operations.contains(.get) || options.mix.operations.contains(.getByEmail)
        guard !reads || population.userCount > 0 else {
            throw BenchError(.notReady, "get needs a --state file of `postern-bench seed` with --users")
        }
        // A journey signs in, whatever its steps before were.
        let signsIn = options.mix.operations.contains(.signIn) && population.passwordUserCount == 0
        guard !signsIn else {
            throw BenchError(.notReady, "sign-in needs a --state file of `postern-bench seed` with --password-users")
        }
        try require([.lookup, .verify], population.sessions.count >= options.threads, "--sessions")
        // Sessions are shared out evenly among the threads; connections are too, but some threads may have one more.
        let lanesMax = (options.connections + options.threads - 1) / options.threads
        let refreshes = options.threads * lanesMax * slotsPerLane
        try require([.refresh], population.sessions.count >= refreshes, "--sessions \(refreshes) or more")
    }

    private static func federatedUsers(_ population: Population, _ options: LoadOptions) throws -> FederatedUsers? {
        guard options.mix.operations.contains(.idp) else { return nil }
        let connection = try Connection(to: options.target.address, authorization: options.target.authorization)
        return try FederatedUsers.make(
            count: options.federatedUserCount, tenantID: population.tenantID, over: connection)
    }

    /// Each thread's part of `count` things.
    private static func shares(of count: Int, among threads: Int) -> [Range<Int>] {
        (0..<threads).map { count * $0 / threads..<count * ($0 + 1) / threads }
    }

    private static func makeLoops(
        _ options: LoadOptions, _ population: Population, _ shares: [Range<Int>], _ traces: [Trace],
        _ providerTokens: [Secret],
        slotsPerLane: Int
    ) throws -> [any Load] {
        let tokenShares = Self.shares(of: providerTokens.count, among: options.threads)
        let laneShares = Self.shares(of: options.connections, among: options.threads)
        let run = UInt64(bitPattern: Clock.system.now().microseconds)
        let (target, authorization) = (options.target, options.target.authorization)
        return try (0..<options.threads).map { index -> any Load in
            var workload = Workload(
                mix: options.mix, population: population, sessions: Array(population.sessions[shares[index]]),
                providerTokens: Array(providerTokens[tokenShares[index]]),
                tokensMax: max(1, options.tokensMax / options.threads), driver: index, run: run,
                seed: UInt64(options.seed ?? population.seed))
            if !traces.isEmpty { workload.replay(traces[index].events) }
            let connections = laneShares[index].count
            switch options.transport {
            case .native:
                let network = try SocketNetwork(
                    to: target.address, authorization: authorization, connections: connections)
                return try LoadLoop(workload, over: network, slotsPerLane: slotsPerLane)
            case .grpc:
                let network = try SocketNetwork(connections: connections) { () throws(BenchError) in
                    try GRPCConnection(to: target.grpcAddress, authorization: authorization)
                }
                return try LoadLoop(workload, over: network, slotsPerLane: slotsPerLane)
            }
        }
    }
}

/// Raises the limit of open files as far as the system lets it: each connection is an open file.
func raiseFileLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
