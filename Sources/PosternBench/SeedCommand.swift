import Base
import Messages
import Wire

/// `postern-bench seed`: a tenant with users, passwords and sessions, and the state file that `run` reads.
///
/// May be run again: what is there stays, and sessions are started anew.
struct SeedCommand {
    /// Below what one tenant may queue for hashing, so that nothing is refused.
    private static let callsInFlight = 16

    private let target: Target
    private let tenantID: Text
    private let hashes: Hashes
    private let userCount: Int
    private let passwordUserCount: Int
    private let sessionCount: Int
    private let statePath: String

    init(_ arguments: inout Arguments) throws {
        target = try Target(&arguments)
        tenantID = Text(arguments.text("--tenant", default: "bench"))
        hashes = try arguments.choice("--hashes", default: Hashes.production)
        userCount = try arguments.number("--users", default: 10_000, in: 0...100_000_000)
        passwordUserCount = try arguments.number("--password-users", default: 100, in: 0...1_000_000)
        sessionCount = try arguments.number("--sessions", default: 1_000, in: 0...1_000_000)
        statePath = try arguments.required("--state")
        try arguments.finish()
    }

    func run() throws {
        let connection = try Connection(to: target.address, authorization: target.authorization)
        try createTenant(connection)
        let start = Instant.now
        let created = userCount == 0 ? 0 : try ImportStream.importUsers(userCount, tenantID: tenantID, over: connection)
        let seconds = Double(Instant.now.nanoseconds(since: start)) / 1e9
        _ = try signUpOrIn(passwordUserCount, connection, email: UserName.passwordEmail)
        var population = Population(tenantID: tenantID)
        population.userCount = userCount
        population.passwordUserCount = passwordUserCount
        population.sessions = try signUpOrIn(sessionCount, connection, email: UserName.sessionEmail)
        try TextFile.write(population.encoded(), to: statePath)
        try TextFile.printOut(
            "tenant \(tenantID): \(userCount) users (\(created) new, \(decimal(seconds, places: 2)) s), "
                + "\(passwordUserCount) with passwords, \(sessionCount) sessions; \(hashes)\n")
    }

    private func createTenant(_ connection: Connection) throws {
        var tenant = Tenant()
        tenant.synthetic = hashes == .synthetic
        let request = TenantsCreateRequest(
            tenantID: tenantID, tenant: tenant, updateMask: ProtobufFieldMask(paths: ["synthetic"]))
        try connection.call(service: "postern.v1.Tenants", method: "Create", request) { result in
            if case .refused(let reason) = result, reason != Reason.tenantIDExists.name {
                throw BenchError(.notReady, "tenant \(tenantID): \(reason)")
            }
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
    }

    /// Signs users up, and those that are there already in. Returns a session of each.
    private func signUpOrIn(_ count: Int, _ connection: Connection, email: (Int) -> Text) throws -> [Session] {
        var sessions = [Session?](repeating: nil, count: count)
        func take(_ message: UnsafeRawBufferPointer, _ number: Int) throws {
            guard let tokens = TokenSlices(inAnswer: message) else {
                throw BenchError(.failed, "an answer without tokens")
            }
            sessions[number] = Session(idToken: [UInt8](tokens.idToken), refreshToken: [UInt8](tokens.refreshToken))
        }
        let password = Secret(UserName.password.bytes)
        try connection.pipeline(count: count, inFlight: Self.callsInFlight) { number, stream, buffer in
            let request = AccountsSignUpRequest(tenantID: tenantID, email: email(number), password: password)
            append(request, .signUp, stream, &buffer)
        } answered: { number, result in
            switch result {
            case .ok(let message): try take(message, number)
            case .refused(Reason.emailExists.name): break
            case .refused(let reason): throw BenchError(.failed, "sign-up of \(email(number)): \(reason)")
            }
        }
        let known = sessions.indices.filter { sessions[$0] == nil }
        try connection.pipeline(count: known.count, inFlight: Self.callsInFlight) { index, stream, buffer in
            let request = AccountsSignInWithPasswordRequest(
                tenantID: tenantID, email: email(known[index]), password: password)
            append(request, .signIn, stream, &buffer)
        } answered: { index, result in
            switch result {
            case .ok(let message): try take(message, known[index])
            case .refused(let reason): throw BenchError(.failed, "sign-in of \(email(known[index])): \(reason)")
            }
        }
        return sessions.compactMap { $0 }
    }

    private func append(_ request: some Message, _ operation: Operation, _ stream: UInt32, _ buffer: inout ByteBuffer) {
        buffer.appendRequest(stream: stream, service: operation.service, method: operation.method) {
            request.encode(into: &$0)
        }
    }
}
