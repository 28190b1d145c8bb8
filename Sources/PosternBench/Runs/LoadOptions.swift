import Base
import JSON

/// The flags of every command that puts a load on a tenant.
struct LoadOptions {
    let target: Target
    let transport: LoadTransport
    var mix: Mix
    /// The requests in order, instead of a choice by `mix`.
    let trace: Trace?
    let statePath: String?
    let tenantID: Text?
    let connections: Int
    let threads: Int
    /// Nil: the seed of the state file.
    let seed: Int?
    let tokensMax: Int
    let federatedUserCount: Int
    /// The caller may put load on the tenant, though it is not marked as synthetic.
    let ownsTenant: Bool
    let showsProgress: Bool

    /// With a trace the flags need no mix.
    init(_ arguments: inout Arguments, trace: Trace? = nil) throws {
        self.trace = trace
        target = try Target(&arguments)
        transport = try arguments.choice("--transport", default: LoadTransport.native)
        mix = try trace.map { Mix($0) } ?? Self.mix(&arguments)
        statePath = arguments.text("--state")
        tenantID = arguments.text("--tenant").map { Text($0) }
        connections = try arguments.number("--connections", default: 8, in: 1...50_000)
        threads = try arguments.number("--threads", default: 1, in: 1...64)
        seed = try arguments.number("--seed", in: 0...Int.max)
        tokensMax = try arguments.number("--repeat-tokens", in: 1...Int.max) ?? .max
        federatedUserCount = try arguments.number("--idp-users", default: 4_000, in: 1...100_000)
        ownsTenant = arguments.isSet("--i-own-this")
        showsProgress = try arguments.choice("--progress", default: Switch.on) == .on
        guard threads <= tokensMax else { throw UsageError("--threads: at most as many as --repeat-tokens") }
        guard threads <= federatedUserCount else { throw UsageError("--threads: at most as many as --idp-users") }
        guard threads <= connections else { throw UsageError("--threads: at most as many as --connections") }
    }

    private static func mix(_ arguments: inout Arguments) throws -> Mix {
        let scenario = try arguments.text("--scenario").map { try Scenario.load($0) }
        let mixText = arguments.text("--mix")
        guard scenario == nil || mixText == nil else { throw UsageError("--scenario takes the place of --mix") }
        if let scenario { return Mix(scenario) }
        guard let mixText else { throw UsageError("--mix or --scenario is missing") }
        return try Mix(parsing: mixText)
    }

    var members: [JSONValue.Member] {
        [
            .init("server", .string(Text(target.address.description))), .init("mix", .string(Text(mix.description))),
            .init("connections", .integer(Int64(connections))), .init("threads", .integer(Int64(threads))),
            .init("tls", .bool(target.address.tls != nil)),
            .init("transport", .string(Text(transport.rawValue))),
            .init("idp_users", mix.operations.contains(.idp) ? .integer(Int64(federatedUserCount)) : .null),
            .init("repeat_tokens", tokensMax == .max ? .null : .integer(Int64(tokensMax))),
        ]
    }
}

/// How requests travel: in frames of Postern's own, or as calls of gRPC over HTTP/2.
enum LoadTransport: String, CaseIterable {
    case native
    case grpc
}

enum Switch: String, CaseIterable {
    case on
    case off
}

/// How a run sends its requests, and for how long.
struct RunPlan {
    enum Loop {
        case closed(inFlight: Int, think: Duration)
        case open(RateSchedule, ArrivalPattern, outstandingMax: Int, whenFull: Pacing.WhenFull)
    }

    var loop: Loop
    var warmup: Int
    var seconds: Int
    /// How long the run waits for answers at the end.
    var drain = Duration.seconds(10)
    /// Each request is due when the trace has it; `loop` only says how many that are a second.
    var isRecorded = false

    /// The default number of requests of an open loop that are on their way at once on each connection.
    static let outstandingPerConnection = 32

    var isOpen: Bool { if case .open = loop { true } else { false } }

    /// The requests that one connection may have on its way.
    func slotsPerLane(connections: Int) -> Int {
        switch loop {
        case .closed(let inFlight, _): inFlight
        case .open(_, _, let outstandingMax, _): (outstandingMax + connections - 1) / connections
        }
    }

    var members: [JSONValue.Member] {
        var members: [JSONValue.Member] = [
            .init("warmup_seconds", .integer(Int64(warmup))), .init("seconds", .integer(Int64(seconds))),
            .init("loop", isOpen ? "open" : "closed"),
        ]
        switch loop {
        case .closed(let inFlight, let think):
            members += [
                .init("in_flight", .integer(Int64(inFlight))),
                .init("think_microseconds", .integer(think.microseconds)),
                .init("rate", .null),
            ]
        case .open(let schedule, let pattern, let outstandingMax, let whenFull):
            members += [
                .init("rate", .string(Text(schedule.description))),
                .init("arrivals", .string(Text(isRecorded ? "recorded" : pattern.rawValue))),
                .init("max_outstanding", .integer(Int64(outstandingMax))),
                .init("when_full", .string(Text(whenFull.rawValue))),
            ]
        }
        return members
    }

    /// The plan in words, for the line that announces the run.
    func description(connections: Int) -> String {
        let loop =
            switch self.loop {
            case .closed(let inFlight, let think):
                "closed loop, \(connections) connections × \(inFlight) in flight"
                    + (think > .zero ? ", \(decimal(Double(think.microseconds) / 1e3, places: 1)) ms to think" : "")
            case .open(let schedule, let pattern, let outstandingMax, let whenFull):
                "open loop, \(schedule.description)\(isRecorded ? "" : " a second (\(pattern.rawValue))") "
                    + "over \(connections) connections, "
                    + "at most \(outstandingMax) at once, then \(whenFull.rawValue)"
            }
        return "\(loop); \(seconds) s after \(warmup) s of warm-up"
    }
}
