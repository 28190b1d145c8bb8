import Base
import Messages
import Wire

/// The requests of one driver, and their data. One owner, not thread-safe.
///
/// Tokens are taken in turn, so that each comes back as late as possible; users at random. A session is refreshed by
/// one request at a time, always with its newest token.
struct Workload {
    /// The part of the workload's data that a request used, given back with its answer.
    typealias Context = Int32
    static let noContext: Context = -1
    /// The new users that one driver can make before it comes to the numbers of the next one: those of an hour at more
    /// than 25,000 a second. The numbers of 100 drivers have ten digits.
    static let freshNumbersMax = 100_000_000

    let mix: Mix
    /// The sessions, each with its newest refresh token.
    private(set) var sessions: [Session]
    private let population: Population
    /// Maps a user's number to a tenant. Without users the tenants are chosen as if each had some.
    private let users: TenantShares
    private let passwordUsers: TenantShares
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

    private var journeys: Journeys?
    /// The requests of a recorded load, in order, and the index of the next one.
    private var recorded: [Trace.Event] = []
    private var nextRecorded = 0
    private var nextFreshNumber: Int
    /// Sessions that no request is refreshing, a ring.
    private var restingSessions: [Context]
    private var restingHead = 0
    private var restingCount: Int

    /// `sessions` and, for `idp`, `providerTokens` are this driver's own. `tokensMax`: how many different ID tokens to
    /// use at most. `driver` is below 100; `run` tells this run's new users from those of others.
    init(
        mix: Mix, population: Population, sessions: [Session], providerTokens: [Secret] = [], tokensMax: Int,
        driver: Int,
        run: UInt64, seed: UInt64
    ) {
        self.mix = mix
        self.population = population
        self.sessions = sessions
        users = TenantShares(of: population.userTotal, in: population)
        passwordUsers = TenantShares(of: population.passwordUserCount, in: population)
        let tenantID = population.templateTenantID
        random = SeededGenerator(seed: seed &+ UInt64(driver))
        journeys = mix.scenario.map { Journeys($0, population) }
        nextFreshNumber = driver * Self.freshNumbersMax
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
        func cycle(_ operation: Operation, _ template: (Text, Text) -> FrameTemplate) -> TokenCycle {
            guard mix.usesSeeded(operation) else { return TokenCycle([]) }
            return TokenCycle(
                sessions.prefix(tokensMax).map {
                    template(population.tenantID($0.tenant), Text(unchecked: $0.idToken))
                })
        }
        verify = cycle(.verify) { FrameTemplate(.verify, TokensVerifyIdTokenRequest(tenantID: $0, idToken: $1)) }
        lookup = cycle(.lookup) { FrameTemplate(.lookup, AccountsLookupRequest(tenantID: $0, idToken: $1)) }
        idp = TokenCycle(
            providerTokens.map {
                FrameTemplate(.idp, FederatedUsers.request($0, FederatedUsers.providerID, population.tenantID))
            })
    }

    /// Appends the next request: of the mix, of a new journey, or of the journey that goes on.
    mutating func appendRequest(stream: UInt32, journey: Int32 = noContext, to buffer: inout ByteBuffer) -> LoadRequest
    {
        guard journeys == nil else { return appendStep(stream: stream, journey: journey, to: &buffer) }
        let event = takeRecorded()
        let operation = event?.operation ?? mix.pick(&random)
        if let user = event?.user {
            let most = operation == .signIn ? population.passwordUserCount : population.userTotal
            return append(operation, user: user % max(1, most), stream: stream, to: &buffer)
        }
        let user = operation == .signIn ? population.passwordUserCount : population.userTotal
        return append(operation, user: random.below(user), stream: stream, to: &buffer)
    }

    mutating func replay(_ events: [Trace.Event]) { recorded = events }

    /// The next request of a recorded load, whether it is sent or not.
    @discardableResult
    mutating func takeRecorded() -> Trace.Event? {
        guard nextRecorded < recorded.count else { return nil }
        defer { nextRecorded += 1 }
        return recorded[nextRecorded]
    }

    private mutating func append(
        _ operation: Operation, user: Int, stream: UInt32, to buffer: inout ByteBuffer
    ) -> LoadRequest {
        var context = Self.noContext
        let place = operation == .signIn ? passwordUsers.place(user) : users.place(user)
        switch operation {
        case .get: get.append(stream: stream, number: place.number, tenant: place.tenant, to: &buffer)
        case .getByEmail: getByEmail.append(stream: stream, number: place.number, tenant: place.tenant, to: &buffer)
        case .lookup: lookup.next().append(stream: stream, to: &buffer)
        case .verify: verify.next().append(stream: stream, to: &buffer)
        case .refresh: context = appendRefresh(stream: stream, to: &buffer)
        case .signIn: signIn.append(stream: stream, number: place.number, tenant: place.tenant, to: &buffer)
        case .create: create.append(stream: stream, number: takeFreshNumber(), tenant: place.tenant, to: &buffer)
        case .signUp: signUp.append(stream: stream, number: takeFreshNumber(), tenant: place.tenant, to: &buffer)
        case .idp: idp.next().append(stream: stream, to: &buffer)
        // Without a session there is nothing to end: journeys never ask for it here.
        case .signOut, .health: health.append(stream: stream, to: &buffer)
        }
        return LoadRequest(operation: operation, context: context)
    }

    /// Takes the data of an answer. False: it is not an answer to this operation.
    mutating func answered(_ request: LoadRequest, _ message: UnsafeRawBufferPointer) -> Bool {
        if request.journey != Self.noContext, request.context == Self.noContext {
            return answeredStep(request, message)
        }
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
        if request.context != Self.noContext { rest(request.context) }
        if request.journey != Self.noContext { journeys?.failed(request.journey) }
    }

    /// How long a journey waits before its next step; nil when it has none.
    mutating func wait(inJourney journey: Int32) -> Duration? { journeys?.advance(journey, &random) }

    mutating func end(journey: Int32) { journeys?.end(journey) }

    var hasJourneys: Bool { journeys != nil }
    /// Whether one more request may begin that is no step of a journey under way.
    var canBegin: Bool { journeys?.canBegin ?? true }

    /// Forgets the journeys of a run that is over.
    mutating func endJourneys() { journeys = mix.scenario.map { Journeys($0, population) } }

    private mutating func appendStep(
        stream: UInt32, journey: Int32, to buffer: inout ByteBuffer
    ) -> LoadRequest {
        let number = journey != Self.noContext ? journey : journeys?.begin(&random) ?? Self.noContext
        guard let state = journeys?[number], let operation = journeys?.operation(of: number) else {
            return append(.health, user: 0, stream: stream, to: &buffer)
        }
        var request = LoadRequest(operation: operation, journey: number)
        switch operation {
        case .verify where !state.idToken.isEmpty, .lookup where !state.idToken.isEmpty:
            // Both requests have these numbers for their fields.
            buffer.appendRequest(stream: stream, service: operation.service, method: operation.method) { message in
                message.appendBytesField(AccountsLookupRequest.FieldNumber.tenantID, population.tenantID(state.tenant))
                message.appendBytesField(AccountsLookupRequest.FieldNumber.idToken, state.idToken)
            }
        case .refresh where !state.refreshToken.isEmpty:
            appendRefresh(of: state.refreshToken, tenant: state.tenant, stream: stream, to: &buffer)
        case .signOut:
            buffer.appendRequest(stream: stream, service: operation.service, method: operation.method) { message in
                message.appendBytesField(SessionsSignOutRequest.FieldNumber.tenantID, population.tenantID(state.tenant))
                message.appendBytesField(SessionsSignOutRequest.FieldNumber.refreshToken, state.refreshToken)
            }
        default:
            let user = operation == .signIn ? state.passwordUser : state.user
            if operation.beginsSession {
                let shares = operation == .signIn ? passwordUsers : users
                journeys?.began(inTenant: shares.place(user).tenant, number)
            }
            request.context = append(operation, user: user, stream: stream, to: &buffer).context
        }
        return request
    }

    private mutating func answeredStep(_ request: LoadRequest, _ message: UnsafeRawBufferPointer) -> Bool {
        let hasSession = journeys?[request.journey].refreshToken.isEmpty == false
        switch request.operation {
        case .signOut: return true  // its answer is empty
        case .signIn, .signUp, .refresh:
            guard request.operation != .refresh || hasSession else { return !message.isEmpty }
            guard let tokens = TokenSlices(inAnswer: message) else { return false }
            journeys?.took(tokens, request.journey)
            return true
        default: return !message.isEmpty
        }
    }

    private mutating func appendRefresh(stream: UInt32, to buffer: inout ByteBuffer) -> Context {
        precondition(restingCount > 0, "more refreshes in flight than sessions")
        let context = restingSessions[restingHead]
        restingHead = restingHead + 1 == restingSessions.count ? 0 : restingHead + 1
        restingCount -= 1
        let session = sessions[Int(context)]
        appendRefresh(of: session.refreshToken, tenant: session.tenant, stream: stream, to: &buffer)
        return context
    }

    private mutating func appendRefresh(
        of token: [UInt8], tenant: Int, stream: UInt32, to buffer: inout ByteBuffer
    ) {
        let attempt = (random.next(), random.next())
        buffer.appendRequest(stream: stream, service: Operation.refresh.service, method: Operation.refresh.method) {
            message in
            message.appendBytesField(TokensRefreshRequest.FieldNumber.tenantID, population.tenantID(tenant))
            message.appendBytesField(TokensRefreshRequest.FieldNumber.refreshToken, token)
            withUnsafeBytes(of: attempt) {
                message.appendBytesField(TokensRefreshRequest.FieldNumber.attemptID, $0)
            }
        }
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

/// Requests with a token each, one after the other, in a cycle.
private struct TokenCycle {
    private let requests: [FrameTemplate]
    private var position = 0

    init(_ requests: [FrameTemplate]) { self.requests = requests }

    mutating func next() -> FrameTemplate {
        position = position + 1 < requests.count ? position + 1 : 0
        return requests[position]
    }
}
