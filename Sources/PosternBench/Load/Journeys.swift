import Base

/// The journeys that are under way in one workload. One owner, not thread-safe.
struct Journeys: Sendable {
    /// The state of a user in a journey.
    struct State: Sendable {
        var journey = 0
        var step = 0
        var timesLeft = 0
        var hasFailed = false
        /// The tokens of the session that the journey began; empty before.
        var idToken: [UInt8] = []
        var refreshToken: [UInt8] = []
        /// The user among those with a password, and among those without, of all tenants together.
        var passwordUser = 0
        var user = 0
        /// The tenant of the session.
        var tenant = 0
    }

    /// The most users in journeys at once. Further users wait, like the requests for which an open loop has no room.
    static let activeMax = 100_000
    private let scenario: Scenario
    private let weightTotal: Int
    private let passwordUsers: Zipf
    private let users: Zipf
    private(set) var states: [State] = []
    private var free: [Int32] = []

    init(_ scenario: Scenario, _ population: Population) {
        self.scenario = scenario
        weightTotal = scenario.journeys.reduce(0) { $0 + $1.weight }
        passwordUsers = Zipf(count: population.passwordUserCount, exponent: scenario.zipf)
        users = Zipf(count: population.userTotal, exponent: scenario.zipf)
    }

    var canBegin: Bool { !free.isEmpty || states.count < Self.activeMax }

    mutating func begin(_ random: inout SeededGenerator) -> Int32 {
        var state = State()
        var rest = random.below(weightTotal)
        while rest >= scenario.journeys[state.journey].weight {
            rest -= scenario.journeys[state.journey].weight
            state.journey += 1
        }
        state.timesLeft = scenario.journeys[state.journey].steps[0].times
        state.passwordUser = passwordUsers.next(&random)
        state.user = users.next(&random)
        guard let number = free.popLast() else {
            states.append(state)
            return Int32(states.count - 1)
        }
        states[Int(number)] = state
        return number
    }

    mutating func end(_ number: Int32) { free.append(number) }

    subscript(number: Int32) -> State { states[Int(number)] }

    func operation(of number: Int32) -> Operation {
        let state = states[Int(number)]
        return scenario.journeys[state.journey].steps[state.step].operation
    }

    mutating func began(inTenant tenant: Int, _ number: Int32) { states[Int(number)].tenant = tenant }

    mutating func took(_ tokens: TokenSlices, _ number: Int32) {
        states[Int(number)].idToken = [UInt8](tokens.idToken)
        states[Int(number)].refreshToken = [UInt8](tokens.refreshToken)
    }

    /// The user gives up.
    mutating func failed(_ number: Int32) { states[Int(number)].hasFailed = true }

    /// Goes on to the next step. Returns how long to think before it; nil when the journey is over.
    mutating func advance(_ number: Int32, _ random: inout SeededGenerator) -> Duration? {
        let index = Int(number)
        let steps = scenario.journeys[states[index].journey].steps
        guard !states[index].hasFailed else { return nil }
        states[index].timesLeft -= 1
        if states[index].timesLeft <= 0 {
            states[index].step += 1
            guard states[index].step < steps.count else { return nil }
            states[index].timesLeft = steps[states[index].step].times
        }
        let think = steps[states[index].step].think
        return .milliseconds(think.lowerBound + random.below(think.count))
    }
}
