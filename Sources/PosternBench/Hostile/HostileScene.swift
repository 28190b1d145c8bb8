import Base
import Messages

/// Two tenants of one server: the canary's, whose callers behave, and one whose app and admin do not.
///
/// Made anew for each run, with the key of a project-admin; both are tenants like any other, with real password hashes.
struct HostileScene: Sendable {
    /// A credential, as HELLO carries it, and the tenant it is bound to.
    struct Party: Sendable {
        let tenantID: Text
        let authorization: Text
    }

    let address: ServerAddress
    /// The address for gRPC.
    let grpcAddress: ServerAddress
    let canary: Party
    let canaryPopulation: Population
    let hostileApp: Party
    let hostileAdmin: Party

    private static let hostileUserCount = 2_000
    private static let canaryUserCount = 1_000
    private static let canaryPasswordUserCount = 8
    /// Each refresh of the canary has a session to itself, however far behind the server is.
    private static let canarySessionCount = HostileCommand.canaryConnections * HostileCommand.canaryInFlight

    init(_ target: Target) throws {
        let admin = try Connection(to: target.address, authorization: target.authorization)
        let run = String(Clock.system.now().microseconds % 1_000_000_000)
        let tenants = (canary: Text("canary-" + run), hostile: Text("hostile-" + run))
        for tenantID in [tenants.canary, tenants.hostile] {
            var tenant = Tenant()
            tenant.enableAnonymousUser = true
            tenant.enableEmailLinkSignin = true
            tenant.allowedContinueDomains = ["hostile.example"]
            let mask = ProtobufFieldMask(paths: [
                "enable_anonymous_user", "enable_email_link_signin", "allowed_continue_domains",
            ])
            try admin.require(
                "Tenants", "Create", TenantsCreateRequest(tenantID: tenantID, tenant: tenant, updateMask: mask))
        }
        address = target.address
        grpcAddress = target.grpcAddress
        canary = try Self.party(.tenantAdmin, of: tenants.canary, admin)
        hostileApp = try Self.party(.app, of: tenants.hostile, admin)
        hostileAdmin = try Self.party(.tenantAdmin, of: tenants.hostile, admin)
        // The users that the hostile tenant lists: more than a page.
        _ = try ImportStream.importUsers(Self.hostileUserCount, tenantID: tenants.hostile, over: admin)
        canaryPopulation = try Self.populate(tenants.canary, admin)
    }

    private static func party(_ role: Role, of tenantID: Text, _ admin: Connection) throws -> Party {
        let request = ProjectCreateApiKeyRequest(
            role: role, scope: Scope(tenants: .tenantID(tenantID)), displayName: "postern-bench hostile")
        let response = try admin.answer("Project", "CreateApiKey", request, as: ProjectCreateApiKeyResponse.self)
        let key = response.secretKey.withBytes { [UInt8]($0) }
        guard let authorization = Text(validating: Array("Bearer ".utf8) + key) else {
            throw BenchError(.failed, "CreateApiKey answered no key")
        }
        return Party(tenantID: tenantID, authorization: authorization)
    }

    private static func populate(_ tenantID: Text, _ admin: Connection) throws -> Population {
        var population = Population(tenantID: tenantID)
        population.userCount = canaryUserCount
        population.passwordUserCount = canaryPasswordUserCount
        _ = try ImportStream.importUsers(canaryUserCount, tenantID: tenantID, over: admin)
        for number in 0..<canaryPasswordUserCount { _ = try signUp(UserName.passwordEmail(number), tenantID, admin) }
        population.sessions = try (0..<canarySessionCount).map {
            try signUp(UserName.sessionEmail($0), tenantID, admin)
        }
        return population
    }

    private static func signUp(_ email: Text, _ tenantID: Text, _ admin: Connection) throws -> Session {
        let request = AccountsSignUpRequest(
            tenantID: tenantID, email: email, password: Secret(UserName.password.bytes))
        let tokens = try admin.answer("Accounts", "SignUp", request, as: AccountsSignUpResponse.self).tokens
        guard let tokens else { throw BenchError(.failed, "SignUp answered no tokens") }
        return Session(idToken: tokens.idToken.bytes, refreshToken: tokens.refreshToken.bytes)
    }
}

extension Connection {
    /// Makes a call of a postern.v1 service that must succeed.
    func require(_ service: StaticString, _ method: StaticString, _ request: some Message) throws {
        try call(service: Text("postern.v1.\(service)"), method: Text("\(method)"), request) { result in
            if case .refused(let reason) = result { throw BenchError(.failed, "\(service)/\(method): \(reason)") }
        }
    }

    /// Makes such a call, and returns its answer.
    func answer<Response: Message>(
        _ service: StaticString, _ method: StaticString, _ request: some Message, as type: Response.Type
    ) throws -> Response {
        try call(service: Text("postern.v1.\(service)"), method: Text("\(method)"), request) { result in
            switch result {
            case .ok(let message): return try Response(decoding: message)
            case .refused(let reason): throw BenchError(.failed, "\(service)/\(method): \(reason)")
            }
        }
    }
}
