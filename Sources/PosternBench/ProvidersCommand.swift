import Base
import JSON
import Messages

/// `postern-bench providers`: what identity providers of many tenants cost the server's memory, each with an issuer of
/// its own and one user who signed in with it.
struct ProvidersCommand {
    /// The first few tenants make the server set things up that later ones share.
    private static let warmUpCount = 16
    /// The tenants that are filled before the next ones are made, which limits the memory of this process.
    private static let batchMax = 50

    private let target: Target
    private let tenantCount: Int
    private let perTenant: Int
    private let format: OutputFormat

    init(_ arguments: inout Arguments) throws {
        target = try Target(&arguments)
        tenantCount = try arguments.number("--tenants", default: 1_000, in: 1...9_000)
        perTenant = try arguments.number("--per-tenant", default: 3, in: 1...10)
        format = try arguments.choice("-o", default: OutputFormat.table)
        try arguments.finish()
    }

    func run() throws {
        guard let process = target.process else {
            throw BenchError(
                .notReady, "nothing on this machine listens on port \(target.address.port): --server-pid is missing")
        }
        let connection = try Connection(to: target.address, authorization: target.authorization)
        let provider = try LoopbackProvider(issuerCount: (Self.warmUpCount + tenantCount) * perTenant)
        try fill(0..<Self.warmUpCount, provider, connection)
        let before = try process.usage()
        var next = Self.warmUpCount
        let end = Self.warmUpCount + tenantCount
        while next < end {
            let batch = next..<min(end, next + Self.batchMax)
            try fill(batch, provider, connection)
            next = batch.upperBound
        }
        let after = try process.usage()
        let growth = max(0, after.anonymousByteCount - before.anonymousByteCount)
        switch format {
        case .table:
            try TextFile.printOut(
                "\(tenantCount) tenants with \(perTenant) providers each: RssAnon grew by \(growth / 1024) KiB "
                    + "to \(after.anonymousByteCount / 1024) KiB\n")
        case .json:
            let json: JSONValue = [
                "tenants": .integer(Int64(tenantCount)), "providers_per_tenant": .integer(Int64(perTenant)),
                "growth_bytes": .integer(Int64(growth)),
                "anonymous_bytes_before": .integer(Int64(before.anonymousByteCount)),
                "anonymous_bytes_after": .integer(Int64(after.anonymousByteCount)),
            ]
            try TextFile.printOut(String(decoding: json.prettyPrinted(), as: UTF8.self) + "\n")
        }
    }

    /// Makes these tenants with their providers, and a user of each provider.
    private func fill(_ tenants: Range<Int>, _ provider: LoopbackProvider, _ connection: Connection) throws {
        try connection.callEach(
            tenants.map { TenantsCreateRequest(tenantID: Self.tenantID($0)) }, service: "postern.v1.Tenants",
            method: "Create", tolerating: Reason.tenantIDExists.name, inFlight: 16)
        var providers: [(tenantID: Text, provider: Provider)] = []
        var signIns: [AccountsSignInWithIdpRequest] = []
        let now = Clock.system.now()
        let run = UInt64(bitPattern: now.microseconds)
        for tenant in tenants {
            for number in 0..<perTenant {
                let issuer = tenant * perTenant + number
                let configuration = provider.configuration(issuer, providerID: Text("oidc.bench-\(number)"))
                providers.append((Self.tenantID(tenant), configuration))
                let idToken = provider.idToken(
                    of: UserName.uid(number), email: UserName.federatedEmail(number, run: run), issuer: issuer,
                    now: now)
                signIns.append(FederatedUsers.request(idToken, configuration.providerID, Self.tenantID(tenant)))
            }
        }
        try FederatedUsers.register(providers, over: connection)
        try FederatedUsers.signIn(signIns, over: connection)
    }

    private static func tenantID(_ number: Int) -> Text { Text("bench-idp-\(number)") }
}
