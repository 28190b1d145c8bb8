import Base
import JSON
import Messages

/// `postern-bench tenants`: what many tenants cost, each with settings of its own.
struct TenantsCommand {
    private static let callsInFlight = 64
    /// The requests that are made at once, which limits the memory of this process.
    private static let batchMax = 1_000

    private let target: Target
    private let tenantCount: Int
    private let format: OutputFormat

    init(_ arguments: inout Arguments) throws {
        target = try Target(&arguments)
        tenantCount = try arguments.number("--tenants", default: 100_000, in: 1...1_000_000)
        format = try arguments.choice("-o", default: OutputFormat.table)
        try arguments.finish()
    }

    func run() throws {
        guard let process = target.process else {
            throw BenchError(
                .notReady, "nothing on this machine listens on port \(target.address.port): --server-pid is missing")
        }
        let connection = try Connection(to: target.address, authorization: target.authorization)
        let before = try process.usage()
        let start = Instant.now
        for begin in stride(from: 0, to: tenantCount, by: Self.batchMax) {
            let requests = (begin..<min(tenantCount, begin + Self.batchMax)).map(Self.request)
            try connection.callEach(
                requests, service: "postern.v1.Tenants", method: "Create", tolerating: Reason.tenantIDExists.name,
                inFlight: Self.callsInFlight)
        }
        let seconds = Double(Instant.now.nanoseconds(since: start)) / 1e9
        let made = try process.usage()
        let latency = try readEach(connection)
        let after = try process.usage()
        try report(
            seconds, cpuSeconds: Double(made.cpuMicroseconds - before.cpuMicroseconds) / 1e6, before: before,
            after: after, latency)
    }

    private static func tenantID(_ number: Int) -> Text { Text("bench-many-\(number)") }

    private static func request(_ number: Int) -> TenantsCreateRequest {
        var tenant = Tenant()
        tenant.displayName = Text("Bench tenant \(number)")
        tenant.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: number % 2 == 0))
        return TenantsCreateRequest(
            tenantID: tenantID(number), tenant: tenant,
            updateMask: ProtobufFieldMask(
                paths: ["display_name", "client.permissions.disabled_user_signup"]))
    }

    /// Reads each tenant once, so that the memory that the server keeps for a tenant in use is counted.
    private func readEach(_ connection: Connection) throws -> Histogram {
        var latency = Histogram()
        for number in 0..<tenantCount {
            let start = Instant.now
            try connection.call(
                service: "postern.v1.Tenants", method: "Get", TenantsGetRequest(tenantID: Self.tenantID(number))
            ) { result in
                if case .refused(let reason) = result { throw BenchError(.failed, "Tenants/Get: \(reason)") }
            }
            latency.record(UInt64(Instant.now.nanoseconds(since: start)))
        }
        return latency
    }

    private func report(
        _ seconds: Double, cpuSeconds: Double, before: ServerProcess.Usage, after: ServerProcess.Usage,
        _ latency: Histogram
    ) throws {
        let growth = max(0, after.anonymousByteCount - before.anonymousByteCount)
        let p99 = Double(latency.value(atShare: 0.99)) / 1e6
        switch format {
        case .table:
            try TextFile.printOut(
                "\(tenantCount) tenants made in \(decimal(seconds, places: 1)) s, "
                    + "\(decimal(cpuSeconds, places: 1)) s of the server's CPU; Get p99 \(decimal(p99, places: 3)) ms\n"
                    + "RssAnon grew by \(growth / 1024) KiB to \(after.anonymousByteCount / 1024) KiB\n")
        case .json:
            let json: JSONValue = [
                "tenants": .integer(Int64(tenantCount)), "seconds": .double(seconds),
                "cpu_seconds": .double(cpuSeconds), "get_p99_milliseconds": .double(p99),
                "growth_bytes": .integer(Int64(growth)),
                "anonymous_bytes_before": .integer(Int64(before.anonymousByteCount)),
                "anonymous_bytes_after": .integer(Int64(after.anonymousByteCount)),
            ]
            try TextFile.printOut(String(decoding: json.prettyPrinted(), as: UTF8.self) + "\n")
        }
    }
}
