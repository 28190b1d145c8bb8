import Base
import Messages
import Wire

/// Users with a password, over all tenants: signed up, or signed in if they exist.
struct SeedSessions {
    private let connection: Connection
    private let population: Population
    private let email: (Int) -> Text
    private let shares: TenantShares

    /// `email` names the users of one tenant; `total` is how many there will be of all.
    init(_ connection: Connection, _ population: Population, email: @escaping (Int) -> Text, of total: Int) {
        self.connection = connection
        self.population = population
        self.email = email
        shares = TenantShares(of: total, in: population)
    }

    /// Returns a session of each of these users.
    func signUpOrIn(_ numbers: Range<Int>, inFlight: Int) throws -> [Session] {
        var sessions = [Session?](repeating: nil, count: numbers.count)
        func take(_ message: UnsafeRawBufferPointer, _ index: Int, _ tenant: Int) throws {
            guard let tokens = TokenSlices(inAnswer: message) else {
                throw BenchError(.failed, "an answer without tokens")
            }
            sessions[index] = Session(
                tenant: tenant, idToken: [UInt8](tokens.idToken), refreshToken: [UInt8](tokens.refreshToken))
        }
        let password = Secret(UserName.password.bytes)
        try connection.pipeline(count: numbers.count, inFlight: inFlight) { index, stream, buffer in
            let (tenant, number) = shares.place(numbers.lowerBound + index)
            let request = AccountsSignUpRequest(
                tenantID: population.tenantID(tenant), email: email(number), password: password)
            append(request, .signUp, stream, &buffer)
        } answered: { index, result in
            let (tenant, number) = shares.place(numbers.lowerBound + index)
            switch result {
            case .ok(let message): try take(message, index, tenant)
            case .refused(Reason.emailExists.name): break
            case .refused(let reason): throw BenchError(.failed, "sign-up of \(email(number)): \(reason)")
            }
        }
        let known = sessions.indices.filter { sessions[$0] == nil }
        try connection.pipeline(count: known.count, inFlight: inFlight) { index, stream, buffer in
            let (tenant, number) = shares.place(numbers.lowerBound + known[index])
            let request = AccountsSignInWithPasswordRequest(
                tenantID: population.tenantID(tenant), email: email(number), password: password)
            append(request, .signIn, stream, &buffer)
        } answered: { index, result in
            let (tenant, number) = shares.place(numbers.lowerBound + known[index])
            switch result {
            case .ok(let message): try take(message, known[index], tenant)
            case .refused(let reason): throw BenchError(.failed, "sign-in of \(email(number)): \(reason)")
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
