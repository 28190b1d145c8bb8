import Base
import Glibc
import JSON

/// `postern-bench hostile`: whether a well-behaved tenant keeps its share of the server while another tenant's app, its
/// admin and a thousand connections from outside do their worst.
///
/// It makes two tenants and leaves them there. Its attacks are bounded by `--seconds`.
struct HostileCommand {
    private let target: Target
    private let http: ServerAddress?
    private let seconds: Int
    private let connections: Int
    private let canaryPerSecond: Int
    private let slowestMilliseconds: Int
    /// Parts of the names of the attacks to make, with commas between them; empty for all.
    private let attack: String
    private let format: OutputFormat

    /// The canary's requests. A sign-in hashes a password; the others are calls that services make on every request.
    private static let mix = "verify=38,get=30,lookup=10,refresh=10,create=5,health=5,sign-in=2"
    static let canaryConnections = 4
    /// Requests on each connection. If the server is further behind, due requests wait.
    static let canaryInFlight = 32
    private static let listers = 50
    /// How long the attacks run before the canary is measured.
    private static let warmup = Duration.seconds(2)

    init(_ arguments: inout Arguments) throws {
        target = try Target(&arguments)
        http = try arguments.text("--http").map { text throws(UsageError) in try ServerAddress(parsing: text) }
        seconds = try arguments.number("--seconds", default: 60, in: 1...600)
        connections = try arguments.number("--connections", default: 1_000, in: 1...10_000)
        canaryPerSecond = try arguments.number("--rate", default: 50, in: 1...10_000)
        slowestMilliseconds = try arguments.number("--p99-max", default: 250, in: 1...60_000)
        attack = arguments.text("--attack") ?? ""
        format = try arguments.choice("-o", default: OutputFormat.table)
        try arguments.finish()
    }

    func run() throws {
        raiseFileLimit()
        let scene = try HostileScene(target)
        let canary = try makeCanary(scene)
        let newcomer = Newcomer(
            address: scene.address, authorization: scene.canary.authorization, tenantID: scene.canary.tenantID)
        let all = attacks(scene)
        let names = try Self.chosen(attack, among: all.map(\.name))
        let chosen = all.filter { names.contains($0.name) }
        tellOfSharedAddress()
        let begin = Instant.now.advanced(by: Self.warmup)
        let end = begin.advanced(by: .seconds(Int64(seconds)))
        let attacks = chosen.map { RunningAttack($0, until: end) }
        var failure: BenchError?
        let newcomerThread = OSThread(name: "newcomer") { newcomer.run(from: begin, until: end) }
        do throws(BenchError) {
            try canary.run(
                RunPeriods(from: begin, warmup: .zero, counted: .seconds(Int64(seconds)), drain: .seconds(10)),
                .open(
                    Arrivals(RateSchedule(perSecond: canaryPerSecond), .uniform, seed: 1),
                    outstandingMax: Self.canaryConnections * Self.canaryInFlight, whenFull: .queue)
            ) { false }
        } catch {
            failure = error
        }
        newcomerThread.join()
        for attack in attacks { attack.join() }
        if let failure { throw failure }
        var rows = Operation.allCases.map { operation in
            let record = canary.recorder.operations[operation.rawValue]
            return (operation.name, Outcome(latency: record.response, errors: record.errors))
        }
        rows.append(("new connection", newcomer.outcome))
        rows.append(("not sent", Outcome(errors: canary.recorder.unsent)))
        let report = HostileReport(
            canary: rows.filter { $0.1.okCount + $0.1.errorCount > 0 }.map { (name: $0.0, outcome: $0.1) },
            attacks: attacks.map { ($0.name, $0.answers.all) })
        try TextFile.printOut(report.printed(as: format))
        try report.check(slowestMilliseconds: slowestMilliseconds)
    }

    /// Only on the loopback of IPv4 does each attack have an address of its own.
    private func tellOfSharedAddress() {
        guard !target.address.usesSource else { return }
        TextFile.printError(
            "postern-bench hostile: all callers come from one address of this machine, so that limits for an address "
                + "count the attacks and the canary's new connections together\n")
    }

    /// The names that have one of the parts in them; all names for an empty text. A part that no name has is an error:
    /// without attacks every server would pass.
    static func chosen(_ attack: String, among names: [String]) throws(UsageError) -> Set<String> {
        guard !attack.isEmpty else { return Set(names) }
        var chosen: Set<String> = []
        for part in attack.split(separator: ",", omittingEmptySubsequences: false) {
            let found = names.filter { !part.isEmpty && $0.contains(part) }
            guard !found.isEmpty else { throw UsageError("--attack: no attack of this run is called \(part)") }
            chosen.formUnion(found)
        }
        return chosen
    }

    private func makeCanary(_ scene: HostileScene) throws -> LoadLoop<SocketNetwork<Connection>> {
        let workload = Workload(
            mix: try Mix(parsing: Self.mix), population: scene.canaryPopulation,
            sessions: scene.canaryPopulation.sessions, tokensMax: .max, driver: 0,
            run: UInt64(bitPattern: Clock.system.now().microseconds), seed: 1)
        let network = try SocketNetwork(
            to: scene.address, authorization: scene.canary.authorization, connections: Self.canaryConnections)
        return try LoadLoop(workload, over: network, slotsPerLane: Self.canaryInFlight)
    }

    private func attacks(_ scene: HostileScene) -> [any Attack] {
        let numbers = FreshNumbers()
        var attacks: [any Attack] = [
            AppKeyFlood(scene: scene, numbers: numbers), AppKeyFlood(scene: scene, numbers: numbers),
            LongPasswords(scene: scene), SessionCookies(scene: scene), ManyStreams(scene: scene),
            TenantAdminFlood(scene: scene), ImportFlood(scene: scene), CostlyHashes(scene: scene),
            PipelinedReads(scene: scene), PipelinedGRPCReads(scene: scene), UnreadAnswers(scene: scene),
            NeverReadingListers(scene: scene, count: Self.listers),
            AnonymousConnections(scene: scene, count: connections),
        ]
        if let http { attacks.append(HalfHTTPRequests(address: http)) }
        return attacks
    }
}
