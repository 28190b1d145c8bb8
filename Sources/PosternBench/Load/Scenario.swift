import Base
import JSON

/// The steps that users take, from a file or a preset.
struct Scenario: Equatable, Sendable {
    struct Step: Equatable, Sendable {
        var operation: Operation
        var times = 1
        /// Milliseconds before the step, each time; drawn evenly from the range.
        var think: ClosedRange<Int> = 0...0
    }

    struct Journey: Equatable, Sendable {
        var name: String
        var weight: Int
        var steps: [Step]
    }

    var name: String
    var journeys: [Journey]
    /// How much more often some users come than others: `Zipf`'s exponent.
    var zipf = 0.0

    static let journeysMax = 32
    static let stepsMax = 64
    static let timesMax = 1_000
    static let thinkMax = 3_600_000
    static let weightMax = 1_000_000
    private static let byteCountMax = 1 << 20

    /// A preset's name, or a file.
    static func load(_ text: String) throws -> Scenario {
        if let preset = presets.first(where: { $0.name == text }) { return preset }
        let json: JSONValue
        do {
            json = try JSONValue(parsing: try TextFile.read(text, byteCountMax: byteCountMax))
        } catch {
            let names = presets.map(\.name).joined(separator: ", ")
            throw UsageError("--scenario \(text): \(error); the presets are \(names)")
        }
        return try Scenario(json, named: text)
    }

    var operations: [Operation] {
        let used = Set(journeys.flatMap { $0.steps.map(\.operation) })
        return Operation.allCases.filter { used.contains($0) }
    }

    /// Whether a journey does something with a session that it did not begin itself.
    func usesSeeded(_ operation: Operation) -> Bool {
        journeys.contains { journey in
            let begun = journey.steps.firstIndex { $0.operation.beginsSession } ?? journey.steps.count
            return journey.steps[..<begun].contains { $0.operation == operation }
        }
    }
}

// Reading a scenario from a file.
extension Scenario {
    init(_ json: JSONValue, named name: String) throws(UsageError) {
        self.name = name
        try Self.checkMembers(json, ["journeys", "zipf"], "the scenario")
        let journeys = json["journeys"]?.array ?? []
        guard (1...Self.journeysMax).contains(journeys.count) else {
            throw UsageError("--scenario: 1 to \(Self.journeysMax) journeys")
        }
        zipf = json["zipf"].map { $0.double ?? -1 } ?? 0
        guard (0...Zipf.exponentMax).contains(zipf) else { throw UsageError("--scenario: zipf is 0 to 5") }
        self.journeys = try journeys.map(Self.journey)
        try check()
    }

    /// Checks that each step that needs a session has one: after a sign-out it needs a new session.
    func check() throws(UsageError) {
        for journey in journeys {
            var state = Operation.SessionNeed.seeded
            for step in journey.steps {
                if step.operation.beginsSession { state = .own }
                guard step.operation.usesSession else { continue }
                let isEnding = step.operation == .signOut
                guard state == .own || state == .seeded && !isEnding, !isEnding || step.times == 1 else {
                    throw UsageError(
                        "--scenario: \(journey.name): \(step.operation.name) needs a sign-in or sign-up before it"
                    )
                }
                if isEnding { state = .ended }
            }
        }
    }

    private static func journey(_ json: JSONValue) throws(UsageError) -> Journey {
        try checkMembers(json, ["name", "weight", "steps"], "a journey")
        let name = json["name"]?.string ?? "journey"
        let steps = json["steps"]?.array ?? []
        guard (1...stepsMax).contains(steps.count) else {
            throw UsageError("--scenario: \(name): 1 to \(stepsMax) steps")
        }
        let weight = try whole(json["weight"], 1, 1...weightMax, "\(name): weight")
        return Journey(
            name: name, weight: weight, steps: try steps.map { json throws(UsageError) in try step(json, name) })
    }

    private static func step(_ json: JSONValue, _ journey: String) throws(UsageError) -> Step {
        try checkMembers(json, ["do", "times", "think_ms"], "\(journey): a step")
        guard let text = json["do"]?.string, let operation = Operation(name: text), operation != .idp else {
            let known = Operation.allCases.filter { $0 != .idp }.map(\.name).joined(separator: ", ")
            throw UsageError("--scenario: \(journey): a step's \"do\" is one of \(known)")
        }
        var step = Step(operation: operation)
        step.times = try whole(json["times"], 1, 1...timesMax, "\(journey): times")
        guard let think = json["think_ms"] else { return step }
        let ends = think.array ?? [think, think]
        guard ends.count == 2 else { throw UsageError("--scenario: \(journey): think_ms is a number, or two") }
        let from = try whole(ends[0], 0, 0...thinkMax, "\(journey): think_ms")
        step.think = from...(try whole(ends[1], 0, from...thinkMax, "\(journey): think_ms"))
        return step
    }

    private static func whole(
        _ json: JSONValue?, _ standard: Int, _ range: ClosedRange<Int>, _ what: String
    ) throws(UsageError) -> Int {
        guard let json else { return standard }
        guard let number = json.integer, range.contains(Int(number)) else {
            throw UsageError("--scenario: \(what) is a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return Int(number)
    }

    /// Refuses unknown members, so that a misspelt one is not ignored.
    private static func checkMembers(_ json: JSONValue, _ known: [String], _ what: String) throws(UsageError) {
        guard let members = json.object else { throw UsageError("--scenario: \(what) must be an object") }
        if let unknown = members.first(where: { !known.contains($0.name.string) }) {
            throw UsageError("--scenario: \(what) has no \"\(unknown.name)\"; it has \(known.joined(separator: ", "))")
        }
    }
}

extension Scenario {
    static let presets: [Scenario] = [
        // Services that ask about the tokens of users who are signed in; each is refreshed once an hour.
        Scenario(
            name: "token-traffic",
            journeys: [
                Journey(name: "verify", weight: 80, steps: [Step(operation: .verify)]),
                Journey(name: "look up", weight: 15, steps: [Step(operation: .lookup)]),
                Journey(name: "refresh", weight: 5, steps: [Step(operation: .refresh)]),
            ]),
        // Everybody signs in and begins to work.
        Scenario(
            name: "morning-login",
            journeys: [
                Journey(
                    name: "begin to work", weight: 1,
                    steps: [
                        Step(operation: .signIn), Step(operation: .lookup, think: 50...200),
                        Step(operation: .verify, times: 5, think: 100...1_000),
                    ])
            ], zipf: 0.6),
        // New users after an announcement; some leave at once.
        Scenario(
            name: "sign-up-wave",
            journeys: [
                Journey(
                    name: "stay", weight: 7,
                    steps: [
                        Step(operation: .signUp), Step(operation: .lookup, think: 50...200),
                        Step(operation: .verify, times: 3, think: 200...2_000),
                        Step(operation: .refresh, think: 500...2_000),
                    ]),
                Journey(
                    name: "leave", weight: 3,
                    steps: [Step(operation: .signUp), Step(operation: .signOut, think: 500...2_000)]),
            ]),
        // Mostly tokens of users who are there, some who come and go, a few who are new.
        Scenario(
            name: "mixed-day",
            journeys: [
                Journey(name: "verify", weight: 700, steps: [Step(operation: .verify)]),
                Journey(name: "look up", weight: 150, steps: [Step(operation: .lookup)]),
                Journey(name: "refresh", weight: 50, steps: [Step(operation: .refresh)]),
                Journey(name: "administer", weight: 20, steps: [Step(operation: .get)]),
                Journey(
                    name: "come and go", weight: 9,
                    steps: [
                        Step(operation: .signIn), Step(operation: .verify, times: 4, think: 100...1_000),
                        Step(operation: .refresh, think: 500...2_000), Step(operation: .signOut, think: 500...2_000),
                    ]),
                Journey(
                    name: "new", weight: 1,
                    steps: [Step(operation: .signUp), Step(operation: .verify, times: 2, think: 100...1_000)]),
            ], zipf: 0.9),
    ]
}
