import Base
import Glibc
import JSON
import Synchronization

/// Set by SIGINT and SIGTERM: a run that is cut short still writes what it has.
private let interrupted = Atomic<Bool>(false)

/// `postern-bench run`: load of a mix of operations, as fast as it is answered or at a steady rate.
struct RunCommand {
    private let target: Target
    private let mix: Mix
    private let statePath: String?
    private let tenantID: Text?
    private let connections: Int
    private let inFlight: Int
    private let threads: Int
    /// Of an open loop; 0: a closed one.
    private let perSecond: Int
    private let seconds: Int
    private let warmup: Int
    private let seed: Int
    private let tokensMax: Int
    private let federatedUserCount: Int
    private let failuresMax: Int
    private let format: OutputFormat

    init(_ arguments: inout Arguments) throws {
        target = try Target(&arguments)
        mix = try Mix(parsing: arguments.required("--mix"))
        statePath = arguments.text("--state")
        tenantID = arguments.text("--tenant").map { Text($0) }
        connections = try arguments.number("--connections", default: 8, in: 1...50_000)
        inFlight = try arguments.number("--in-flight", default: 1, in: 1...4_096)
        threads = try arguments.number("--threads", default: 1, in: 1...64)
        perSecond = try arguments.number("--rate", in: 1...1_000_000) ?? 0
        seconds = try arguments.number("--seconds", default: 5, in: 1...86_400)
        warmup = try arguments.number("--warmup", default: 1, in: 0...3_600)
        seed = try arguments.number("--seed", default: 1, in: 0...Int.max)
        tokensMax = try arguments.number("--repeat-tokens", in: 1...Int.max) ?? .max
        federatedUserCount = try arguments.number("--idp-users", default: 4_000, in: 1...100_000)
        failuresMax = try arguments.number("--failures-max", default: 0, in: 0...100)
        format = try arguments.choice("-o", default: OutputFormat.table)
        try arguments.finish()
        guard threads <= federatedUserCount else { throw UsageError("--threads: at most as many as --idp-users") }
        guard perSecond == 0 || perSecond >= threads else {
            throw UsageError("--threads: at most as many as --rate")
        }
        guard perSecond == 0 || inFlight == 1 else {
            throw UsageError("--in-flight: goes with a closed loop; --rate says how much there is to do")
        }
        guard threads <= connections else { throw UsageError("--threads: at most as many as --connections") }
    }

    func run() throws {
        var population = try population()
        try check(population)
        raiseFileLimit()
        let server = target.process
        let hashes = try Hashes.ofTenant(population.tenantID, at: target)
        let shares = self.shares(of: population.sessions.count)
        // Its provider answers until the run is over.
        let federatedUsers = try federatedUsers(population)
        defer { withExtendedLifetime(federatedUsers) {} }
        let drivers = try makeDrivers(population, shares, federatedUsers?.idTokens ?? [])
        let start = Instant.now
        let schedule = Schedule(
            from: start, warmup: .seconds(warmup), counted: .seconds(seconds), drain: .seconds(10))
        let (before, after) = try drive(drivers, schedule, server)
        let operations = mix.operations.map { operation in
            var total = Outcome()
            for driver in drivers { total.merge(driver.outcomes[operation.rawValue]) }
            return (operation: operation, outcome: total)
        }
        var report = Report(
            configuration: configuration(population), hashes: hashes,
            seconds: max(1e-3, Double(after.time.nanoseconds(since: before.time)) / 1e9), operations: operations,
            connectionsLost: drivers.reduce(0) { $0 + $1.connectionsLost },
            generatorCPUMicroseconds: after.generator - before.generator,
            machineCPUMicroseconds: after.machine - before.machine)
        report.lag = drivers.compactMap(\.lag).reduce(nil) { sum, lag in
            var sum = sum ?? Lag()
            sum.merge(lag)
            return sum
        }
        if let before = before.server, let after = after.server { report.server = (before, after) }
        for (driver, share) in zip(drivers, shares) {
            population.sessions.replaceSubrange(share, with: driver.sessions)
        }
        if let statePath, mix.operations.contains(.refresh) { try TextFile.write(population.encoded(), to: statePath) }
        try TextFile.printOut(report.printed(as: format))
        try checkSound(report)
    }

    /// Throws if the figures do not mean what they seem to.
    private func checkSound(_ report: Report) throws {
        if interrupted.load(ordering: .relaxed) {
            throw BenchError(.interrupted, "interrupted: the figures are partial")
        }
        if report.connectionsLost > 0 { throw BenchError(.failed, "\(report.connectionsLost) connections were lost") }
        if let lag = report.lag, lag.unsentCount > 0 {
            throw BenchError(.failed, "\(lag.unsentCount) requests could not be sent: the server is too far behind")
        }
        try report.check(failuresMaxPercent: failuresMax)
    }

    private func population() throws -> Population {
        guard let statePath else { return Population(tenantID: tenantID ?? "bench") }
        let population = try Population(decoding: TextFile.read(statePath), from: statePath)
        if let tenantID, tenantID != population.tenantID {
            throw UsageError("--tenant \(tenantID): the state file is of \(population.tenantID)")
        }
        return population
    }

    /// What the mix needs must have been seeded.
    private func check(_ population: Population) throws {
        func require(_ operations: [Operation], _ holds: Bool, _ flag: String) throws {
            guard !holds, let operation = mix.operations.first(where: { operations.contains($0) }) else { return }
            throw BenchError(
                .notReady, "\(operation.name) needs a --state file of `postern-bench seed` with \(flag)")
        }
        try require([.get, .getByEmail], population.userCount > 0, "--users")
        try require([.signIn], population.passwordUserCount > 0, "--password-users")
        try require([.lookup, .verify], population.sessions.count >= threads, "--sessions")
        let inFlight = perSecond == 0 ? inFlight : OpenLoop.inFlightPerConnectionMax
        let refreshes = connections * inFlight + threads
        try require([.refresh], population.sessions.count >= refreshes, "--sessions \(refreshes) or more")
    }

    private func federatedUsers(_ population: Population) throws -> FederatedUsers? {
        guard mix.operations.contains(.idp) else { return nil }
        let connection = try Connection(to: target.address, authorization: target.authorization)
        return try FederatedUsers.make(count: federatedUserCount, tenantID: population.tenantID, over: connection)
    }

    /// Each thread's part of so many things.
    private func shares(of count: Int) -> [Range<Int>] {
        (0..<threads).map { count * $0 / threads..<count * ($0 + 1) / threads }
    }

    private func makeDrivers(
        _ population: Population, _ shares: [Range<Int>], _ providerTokens: [Secret]
    ) throws -> [any Load] {
        let tokenShares = self.shares(of: providerTokens.count)
        let run = UInt64(bitPattern: Clock.system.now().microseconds)
        return try (0..<threads).map { index in
            let workload = Workload(
                mix: mix, population: population, sessions: Array(population.sessions[shares[index]]),
                providerTokens: Array(providerTokens[tokenShares[index]]), tokensMax: max(1, tokensMax / threads),
                driver: index, run: run, seed: UInt64(seed))
            let own = connections * (index + 1) / threads - connections * index / threads
            guard perSecond == 0 else {
                return try OpenLoop(
                    workload, address: target.address, authorization: target.authorization, connections: own,
                    perSecond: perSecond * (index + 1) / threads - perSecond * index / threads)
            }
            return try Driver(
                workload, address: target.address, authorization: target.authorization, connections: own,
                inFlight: inFlight)
        }
    }

    /// Runs the drivers' threads, and samples at both ends of what counts.
    private func drive(_ drivers: [any Load], _ schedule: Schedule, _ server: ServerProcess?) throws -> (Sample, Sample)
    {
        for number in [SIGINT, SIGTERM] { signal(number) { _ in interrupted.store(true, ordering: .relaxed) } }
        let failure = Mutex<BenchError?>(nil)
        let threads = drivers.enumerated().map { index, driver in
            OSThread(name: "driver-\(index)") {
                do throws(BenchError) {
                    try driver.run(schedule) { interrupted.load(ordering: .relaxed) }
                } catch {
                    failure.withLock { $0 = error }
                }
            }
        }
        sleep(until: schedule.countFrom)
        let before = Result { try Sample(server) }
        sleep(until: schedule.countUntil)
        let after = Result { try Sample(server) }
        for thread in threads { thread.join() }
        if let error = failure.withLock({ $0 }) { throw error }
        return (try before.get(), try after.get())
    }

    private func configuration(_ population: Population) -> [(name: Text, value: JSONValue)] {
        [
            ("server", .string(Text(target.address.description))), ("tenant", .string(population.tenantID)),
            ("mix", .string(Text(mix.description))), ("connections", .integer(Int64(connections))),
            ("in_flight", .integer(Int64(inFlight))), ("threads", .integer(Int64(threads))),
            ("warmup_seconds", .integer(Int64(warmup))), ("seconds", .integer(Int64(seconds))),
            ("seed", .integer(Int64(seed))), ("loop", perSecond == 0 ? "closed" : "open"),
            ("rate", perSecond == 0 ? .null : .integer(Int64(perSecond))),
            ("users", .integer(Int64(population.userCount))),
            ("sessions", .integer(Int64(population.sessions.count))),
            ("idp_users", mix.operations.contains(.idp) ? .integer(Int64(federatedUserCount)) : .null),
            ("repeat_tokens", tokensMax == .max ? .null : .integer(Int64(tokensMax))),
        ]
    }
}

/// CPU time so far, at one moment.
private struct Sample {
    let server: ServerProcess.Usage?
    let generator: Int
    let machine: Int
    let time: Instant

    init(_ process: ServerProcess?) throws {
        server = try? process?.usage()
        generator = ownCPUMicroseconds()
        machine = try ServerProcess.machineCPUMicroseconds()
        time = .now
    }
}

/// Returns early when the run is interrupted.
private func sleep(until instant: Instant) {
    while !interrupted.load(ordering: .relaxed) {
        let left = instant.nanoseconds(since: .now)
        if left <= 0 { return }
        usleep(UInt32(min(left / 1000 + 1, 50_000)))
    }
}

private func ownCPUMicroseconds() -> Int {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1_000_000
        + Int(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
}

/// As many open files as the system lets this process have: one is a connection.
func raiseFileLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
