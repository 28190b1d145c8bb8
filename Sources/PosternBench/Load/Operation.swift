import Base

/// The requests that a driver can make: one method of the API each. The raw value counts from 0, an index into
/// per-operation figures.
enum Operation: Int, CaseIterable, Sendable {
    case get
    case getByEmail
    case lookup
    case verify
    case refresh
    case signIn
    case create
    case signUp
    case idp
    case signOut
    case health

    init?(name: some StringProtocol) {
        guard let operation = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = operation
    }

    /// As `--mix` and the reports write it.
    var name: String {
        switch self {
        case .get: "get"
        case .getByEmail: "get-by-email"
        case .lookup: "lookup"
        case .verify: "verify"
        case .refresh: "refresh"
        case .signIn: "sign-in"
        case .create: "create"
        case .signUp: "sign-up"
        case .idp: "idp"
        case .signOut: "sign-out"
        case .health: "health"
        }
    }

    var service: Text {
        switch self {
        case .get, .getByEmail, .create: "postern.v1.Users"
        case .lookup, .signIn, .signUp, .idp: "postern.v1.Accounts"
        case .verify, .refresh: "postern.v1.Tokens"
        case .signOut: "postern.v1.Sessions"
        case .health: "grpc.health.v1.Health"
        }
    }

    var method: Text {
        switch self {
        case .get: "Get"
        case .getByEmail: "GetByEmail"
        case .lookup: "Lookup"
        case .verify: "VerifyIdToken"
        case .refresh: "Refresh"
        case .signIn: "SignInWithPassword"
        case .create: "Create"
        case .signUp: "SignUp"
        case .idp: "SignInWithIdp"
        case .signOut: "SignOut"
        case .health: "Check"
        }
    }

    /// Begins a session, whose tokens the later steps of a journey use.
    var beginsSession: Bool { self == .signIn || self == .signUp }

    /// Answers with a session's tokens.
    var givesTokens: Bool { beginsSession || self == .refresh }

    var usesSession: Bool { self == .verify || self == .lookup || self == .refresh || self == .signOut }

    /// The session that a step of a journey uses.
    enum SessionNeed {
        case seeded
        case own
        case ended
    }

    /// The operations that `--mix` can name: a sign-out belongs to a journey, which has a session to end.
    static let inMixes = allCases.filter { $0 != .signOut }
}
