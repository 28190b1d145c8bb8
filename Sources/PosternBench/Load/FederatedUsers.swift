import Base
import Messages
import Wire

/// The data of `idp`: a tenant's provider, and users who have signed in with it before, with an ID token for each.
struct FederatedUsers {
    static let providerID: Text = "oidc.bench"
    private static let callsInFlight = 16

    /// Answers the server as long as this value lives.
    private let provider: LoopbackProvider
    let idTokens: [Secret]

    /// Makes the provider, replacing one of an earlier run, and signs every user in once.
    static func make(count: Int, tenantID: Text, over connection: Connection) throws -> FederatedUsers {
        let provider = try LoopbackProvider(issuerCount: 1)
        try register([(tenantID, provider.configuration(0, providerID: providerID))], over: connection)
        let now = Clock.system.now()
        let run = UInt64(bitPattern: now.microseconds)
        let idTokens = (0..<count).map { number in
            provider.idToken(
                of: UserName.uid(number), email: UserName.federatedEmail(number, run: run), issuer: 0, now: now)
        }
        try signIn(idTokens.map { request($0, providerID, tenantID) }, over: connection)
        return FederatedUsers(provider: provider, idTokens: idTokens)
    }

    static func request(_ idToken: Secret, _ providerID: Text, _ tenantID: Text) -> AccountsSignInWithIdpRequest {
        AccountsSignInWithIdpRequest(
            tenantID: tenantID, credential: IdpCredential(providerID: providerID, credential: .providerIDToken(idToken))
        )
    }

    /// Gives tenants their providers. A provider of the same id is replaced, and its users stay linked.
    static func register(_ providers: [(tenantID: Text, provider: Provider)], over connection: Connection) throws {
        try connection.callEach(
            providers.map { ProvidersDeleteRequest(tenantID: $0.tenantID, providerID: $0.provider.providerID) },
            service: "postern.v1.Providers", method: "Delete", tolerating: Reason.providerNotFound.name,
            inFlight: callsInFlight)
        try connection.callEach(
            providers.map { ProvidersCreateRequest(tenantID: $0.tenantID, provider: $0.provider) },
            service: "postern.v1.Providers", method: "Create", inFlight: callsInFlight)
    }

    static func signIn(_ requests: [AccountsSignInWithIdpRequest], over connection: Connection) throws {
        try connection.callEach(
            requests, service: Operation.idp.service, method: Operation.idp.method, inFlight: callsInFlight)
    }
}

extension Connection {
    /// Makes all of these calls. No call may be refused, except with the reason `tolerated`.
    func callEach(
        _ requests: [some Message], service: Text, method: Text, tolerating tolerated: String = "", inFlight: Int
    ) throws {
        try pipeline(count: requests.count, inFlight: inFlight) { number, stream, buffer in
            buffer.appendRequest(stream: stream, service: service, method: method) {
                requests[number].encode(into: &$0)
            }
        } answered: { _, result in
            if case .refused(let reason) = result, reason != tolerated {
                throw BenchError(.failed, "\(service)/\(method): \(reason)")
            }
        }
    }
}
