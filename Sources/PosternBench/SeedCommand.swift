import Base
import Messages
import Wire

/// `postern-bench seed`: tenants with users, passwords and sessions, and the state file that `run` reads.
///
/// The command may be run again: existing data stays. After a run that was cut short it goes on where that run stopped.
/// After a complete run it begins the sessions anew, because their tokens do not last.
struct SeedCommand {
    /// Below the number of hashes that one tenant may queue, so that nothing is refused.
    private static let callsInFlight = 16
    /// The users or sessions that are made between two checks for an interruption.
    private static let chunk = 500
    /// An ID token lasts an hour: sessions of a run that was cut short are of use for half of it.
    private static let sessionsKeptMicroseconds: Int64 = 30 * 60 * 1_000_000

    private let target: Target
    /// The population that is wanted, without sessions.
    private let wanted: Population
    private let hashes: Hashes
    private let sessionCount: Int
    private let statePath: String
    /// The caller may put users into a tenant with users of others.
    private let ownsTenant: Bool

    init(_ arguments: inout Arguments) throws {
        target = try Target(&arguments)
        var wanted = Population(tenantID: Text(arguments.text("--tenant", default: "bench")))
        wanted.tenantCount = try arguments.number("--tenants", default: 1, in: 1...Population.tenantsMax)
        wanted.zipf = try arguments.decimal("--zipf", default: "1", in: 0...Zipf.exponentMax)
        wanted.seed = try arguments.number("--seed", default: 1, in: 0...Int.max)
        hashes = try arguments.choice("--hashes", default: Hashes.production)
        wanted.userCount = try arguments.number("--users", default: 10_000, in: 0...100_000_000)
        wanted.passwordUserCount = try arguments.number("--password-users", default: 100, in: 0...1_000_000)
        sessionCount = try arguments.number("--sessions", default: 1_000, in: 0...1_000_000)
        statePath = try arguments.requiredOutputFile("--state")
        ownsTenant = arguments.isSet("--i-own-this")
        self.wanted = wanted
        try arguments.finish()
    }

    func run() throws {
        Interruption.listen()
        let connection = try Connection(to: target.address, authorization: target.authorization)
        var population = try begin(connection)
        let start = Instant.now
        let created = try importUsers(&population, connection)
        let seconds = Double(Instant.now.nanoseconds(since: start)) / 1e9
        try makePasswordUsers(&population, connection)
        try beginSessions(&population, connection)
        population.done.isComplete = true
        try StateFile.write(population, to: statePath)
        let tenants = wanted.tenantCount > 1 ? "\(wanted.tenantCount) tenants of \(wanted.tenantName)" : nil
        try TextFile.printOut(
            "\(tenants ?? "tenant \(wanted.tenantName)"): \(wanted.userCount) users (\(created) new, "
                + "\(decimal(seconds, places: 2)) s), \(wanted.passwordUserCount) with passwords, "
                + "\(population.sessions.count) sessions; \(hashes)\n")
    }

    /// Makes the tenants, and takes over what an earlier run of the same plan left on the same server.
    private func begin(_ connection: Connection) throws -> Population {
        // Checked before anything is made: the state file of another server stays as it is.
        var earlier: Population?
        if TextFile.exists(statePath) {
            let found = try StateFile.read(statePath)
            try found.checkOrigin(found.originAsFound(over: connection), statePath)
            earlier = found
        }
        for number in 0..<wanted.tenantCount { try createTenant(wanted.tenantID(number), connection) }
        var population = wanted
        population.origin = try wanted.originAsFound(over: connection)
        guard let earlier, isSamePlan(earlier) else { return population }
        population.done = earlier.done
        population.done.isComplete = false
        let age = Clock.system.now().microseconds - earlier.done.sessionsBeganAt
        // A clock that was set back does not make a session young.
        if !earlier.done.isComplete, (0..<Self.sessionsKeptMicroseconds).contains(age) {
            population.sessions = Array(earlier.sessions.prefix(sessionCount))
        }
        return population
    }

    /// Whether an earlier run had the same plan. With other shares of the tenants, other numbers would be missing.
    private func isSamePlan(_ earlier: Population) -> Bool {
        guard earlier.tenantName == wanted.tenantName, earlier.tenantCount == wanted.tenantCount else { return false }
        return wanted.tenantCount == 1
            || earlier.zipf == wanted.zipf && earlier.userCount == wanted.userCount
                && earlier.passwordUserCount == wanted.passwordUserCount
    }

    private func createTenant(_ tenantID: Text, _ connection: Connection) throws {
        var tenant = Tenant()
        tenant.synthetic = hashes == .synthetic
        let request = TenantsCreateRequest(
            tenantID: tenantID, tenant: tenant, updateMask: ProtobufFieldMask(paths: ["synthetic"]))
        let isNew = try connection.call(service: "postern.v1.Tenants", method: "Create", request) { result -> Bool in
            guard case .refused(let reason) = result else { return true }
            guard reason == Reason.tenantIDExists.name else {
                throw BenchError(.notReady, "tenant \(tenantID): \(reason)")
            }
            return false
        }
        let found = try connection.call(
            service: "postern.v1.Tenants", method: "Get", TenantsGetRequest(tenantID: tenantID)
        ) { result -> Tenant? in
            guard case .ok(let message) = result else { return nil }
            return try TenantsGetResponse(decoding: message).tenant
        }
        guard let found, found.synthetic == tenant.synthetic else {
            throw BenchError(
                .notReady,
                "tenant \(tenantID) is there, but not with --hashes \(hashes.rawValue): take another --tenant")
        }
        if !isNew, !found.synthetic, !ownsTenant { try connection.refuseTenantOfOthers(tenantID) }
    }

    /// Returns how many were new.
    private func importUsers(_ population: inout Population, _ connection: Connection) throws -> Int {
        guard population.done.users < wanted.userCount else { return 0 }
        let shares = TenantShares(of: wanted.userCount, in: wanted)
        var created = 0
        for number in 0..<wanted.tenantCount where shares.count(number) > 0 {
            // The server skips existing users, at a few microseconds each.
            created += try ImportStream.importUsers(
                shares.count(number), tenantID: wanted.tenantID(number), over: connection)
            try stopIfAsked(population)
        }
        population.done.users = wanted.userCount
        try StateFile.write(population, to: statePath)
        return created
    }

    private func makePasswordUsers(_ population: inout Population, _ connection: Connection) throws {
        let users = SeedSessions(connection, wanted, email: UserName.passwordEmail, of: wanted.passwordUserCount)
        while population.done.passwordUsers < wanted.passwordUserCount {
            try stopIfAsked(population)
            let next = min(wanted.passwordUserCount, population.done.passwordUsers + Self.chunk)
            _ = try users.signUpOrIn(population.done.passwordUsers..<next, inFlight: Self.callsInFlight)
            population.done.passwordUsers = next
            try StateFile.write(population, to: statePath)
        }
    }

    private func beginSessions(_ population: inout Population, _ connection: Connection) throws {
        let users = SeedSessions(connection, wanted, email: UserName.sessionEmail, of: sessionCount)
        if population.sessions.isEmpty { population.done.sessionsBeganAt = Clock.system.now().microseconds }
        var savedCount = population.sessions.count
        while population.sessions.count < sessionCount {
            try stopIfAsked(population)
            let next = min(sessionCount, population.sessions.count + Self.chunk)
            population.sessions += try users.signUpOrIn(population.sessions.count..<next, inFlight: Self.callsInFlight)
            // The whole file is written each time, but seldom enough that it is a small part of the work.
            if population.sessions.count >= savedCount + savedCount / 2 {
                try StateFile.write(population, to: statePath)
                savedCount = population.sessions.count
            }
        }
    }

    private func stopIfAsked(_ population: Population) throws {
        guard Interruption.isAsked else { return }
        try StateFile.write(population, to: statePath)
        throw BenchError(.interrupted, "interrupted: run the same command again to go on")
    }
}
