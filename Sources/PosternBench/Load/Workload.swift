import Base
import Messages
import Wire

/// What one driver asks for, and with which data. One owner, not thread-safe.
///
/// Tokens are taken in turn, so that each comes back as late as possible; users at random. A session is refreshed by
/// one request at a time, always with its newest token.
struct Workload {
    /// Which of its data a request used, given back with its answer.
    typealias Context = Int32
    static let noContext: Context = -1

    let mix: Mix
    /// With the newest refresh token each.
    private(set) var sessions: [Session]
    private let population: Population
    private var random: SeededGenerator

    private let get: FrameTemplate
    private let getByEmail: FrameTemplate
    private let signIn: FrameTemplate
    private let create: FrameTemplate
    private let signUp: FrameTemplate
    private let health: FrameTemplate
    private var verify: TokenCycle
    private var lookup: TokenCycle
    private var idp: TokenCycle

    private var nextFreshNumber: Int
    /// Sessions that no request is refreshing, a ring.
    private var restingSessions: [Context]
    private var restingHead = 0
    private var restingCount: Int

    /// `sessions` are this driver's own. `providerTokens` too, for `idp`. `tokensMax`: how many different ID
    /// tokens to use at most. `driver` is below 100; `run` tells this run's new users from those of others.
    init(
        mix: Mix, population: Population, sessions: [Session], providerTokens: [Secret] = [], tokensMax: Int,
        driver: Int,
        run: UInt64, seed: UInt64
    ) {
        self.mix = mix
        self.population = population
        self.sessions = sessions
        let tenantID = population.tenantID
        random = SeededGenerator(seed: seed &+ UInt64(driver))
        nextFreshNumber = driver * 10_000_000
        restingSessions = (0..<Context(sessions.count)).map { $0 }
        restingCount = sessions.count

        let number = FrameTemplate.placeholder
        get = FrameTemplate(.get, UsersGetRequest(tenantID: tenantID, uid: UserName.uid(number)))
        getByEmail = FrameTemplate(
            .getByEmail, UsersGetByEmailRequest(tenantID: tenantID, email: UserName.email(number)))
        signIn = FrameTemplate(
            .signIn,
            AccountsSignInWithPasswordRequest(
                tenantID: tenantID, email: UserName.passwordEmail(number), password: Secret(UserName.password.bytes)))
        let freshEmail = UserName.freshEmail(number, run: run)
        create = FrameTemplate(.create, UsersCreateRequest(tenantID: tenantID, email: freshEmail))
        signUp = FrameTemplate(
            .signUp,
            AccountsSignUpRequest(tenantID: tenantID, email: freshEmail, password: Secret(UserName.password.bytes)))
        health = FrameTemplate(.health, GRPCHealthCheckRequest())
        let tokens = sessions.prefix(tokensMax).map { Text(unchecked: $0.idToken) }
        let operations = mix.operations
        verify = TokenCycle(
            operations.contains(.verify)
                ? tokens.map { FrameTemplate(.verify, TokensVerifyIdTokenRequest(tenantID: tenantID, idToken: $0)) }
                : [])
        lookup = TokenCycle(
            operations.contains(.lookup)
                ? tokens.map { FrameTemplate(.lookup, AccountsLookupRequest(tenantID: tenantID, idToken: $0)) } : [])
        idp = TokenCycle(
            providerTokens.map {
                FrameTemplate(.idp, FederatedUsers.request($0, FederatedUsers.providerID, tenantID))
            })
    }

    /// Appends the next request of the mix.
    mutating func appendRequest(stream: UInt32, journey: Int32 = noContext, to buffer: inout ByteBuffer) -> LoadRequest
    {
        let operation = mix.pick(&random)
        var context = Self.noContext
        switch operation {
        case .get: get.append(stream: stream, number: random.below(population.userCount), to: &buffer)
        case .getByEmail: getByEmail.append(stream: stream, number: random.below(population.userCount), to: &buffer)
        case .lookup: lookup.next().append(stream: stream, to: &buffer)
        case .verify: verify.next().append(stream: stream, to: &buffer)
        case .refresh: context = appendRefresh(stream: stream, to: &buffer)
        case .signIn: signIn.append(stream: stream, number: random.below(population.passwordUserCount), to: &buffer)
        case .create: create.append(stream: stream, number: takeFreshNumber(), to: &buffer)
        case .signUp: signUp.append(stream: stream, number: takeFreshNumber(), to: &buffer)
        case .idp: idp.next().append(stream: stream, to: &buffer)
        case .health: health.append(stream: stream, to: &buffer)
        }
        return LoadRequest(operation: operation, context: context)
    }

    /// Takes what an answer brought. False: it is not what the operation answers with.
    mutating func answered(_ request: LoadRequest, _ message: UnsafeRawBufferPointer) -> Bool {
        guard request.operation == .refresh else { return !message.isEmpty }
        let context = request.context
        guard let tokens = TokenSlices(inAnswer: message) else { return false }
        sessions[Int(context)].refreshToken = [UInt8](tokens.refreshToken)
        sessions[Int(context)].idToken = [UInt8](tokens.idToken)
        rest(context)
        return true
    }

    /// A failed refresh may have been done or not: the session's token stays as it is and is tried again.
    mutating func failed(_ request: LoadRequest) {
        if request.operation == .refresh { rest(request.context) }
    }

    /// How long a journey waits before its next step; nil when it has none.
    func wait(inJourney journey: Int32) -> Duration? { nil }

    mutating func end(journey: Int32) {}

    private mutating func appendRefresh(stream: UInt32, to buffer: inout ByteBuffer) -> Context {
        precondition(restingCount > 0, "more refreshes in flight than sessions")
        let context = restingSessions[restingHead]
        restingHead = restingHead + 1 == restingSessions.count ? 0 : restingHead + 1
        restingCount -= 1
        let attempt = (random.next(), random.next())
        buffer.appendRequest(stream: stream, service: Operation.refresh.service, method: Operation.refresh.method) {
            message in
            message.appendBytesField(TokensRefreshRequest.FieldNumber.tenantID, population.tenantID)
            message.appendBytesField(
                TokensRefreshRequest.FieldNumber.refreshToken, sessions[Int(context)].refreshToken)
            withUnsafeBytes(of: attempt) {
                message.appendBytesField(TokensRefreshRequest.FieldNumber.attemptID, $0)
            }
        }
        return context
    }

    private mutating func rest(_ context: Context) {
        let tail = restingHead + restingCount
        restingSessions[tail < restingSessions.count ? tail : tail - restingSessions.count] = context
        restingCount += 1
    }

    private mutating func takeFreshNumber() -> Int {
        defer { nextFreshNumber += 1 }
        return nextFreshNumber
    }
}

/// Requests with a token each, one after the other, round and round.
private struct TokenCycle {
    private let requests: [FrameTemplate]
    private var position = 0

    init(_ requests: [FrameTemplate]) { self.requests = requests }

    mutating func next() -> FrameTemplate {
        position = position + 1 < requests.count ? position + 1 : 0
        return requests[position]
    }
}
