import Base
import JSON
import Messages

/// `postern-bench users`: imports many users with password hashes, then asks for them by every index.
struct UsersCommand {
    private let target: Target
    private let tenantID: Text
    private let userCount: Int
    private let lookupCount: Int
    private let seed: Int
    /// The caller may put users into a tenant with users of others.
    private let ownsTenant: Bool
    private let format: OutputFormat

    init(_ arguments: inout Arguments) throws {
        target = try Target(&arguments)
        tenantID = Text(arguments.text("--tenant", default: "bench-users"))
        userCount = try arguments.number("--users", default: 1_000_000, in: 1...10_000_000)
        lookupCount = try arguments.number("--lookups", default: 2_000, in: 1...1_000_000)
        seed = try arguments.number("--seed", default: 1, in: 0...Int.max)
        ownsTenant = arguments.isSet("--i-own-this")
        format = try arguments.choice("-o", default: OutputFormat.table)
        try arguments.finish()
    }

    func run() throws {
        let connection = try Connection(to: target.address, authorization: target.authorization)
        try connection.callEach(
            [TenantsCreateRequest(tenantID: tenantID)], service: "postern.v1.Tenants", method: "Create",
            tolerating: Reason.tenantIDExists.name, inFlight: 1)
        if !ownsTenant { try connection.refuseTenantOfOthers(tenantID) }
        let imported = try importUsers(connection)
        let lookups = UserLookups(
            tenantID: tenantID, userCount: userCount, seed: seed, connection: connection)
        var report = UsersReport(imported: imported, latencies: [])
        for lookup in UserLookups.Kind.allCases {
            report.latencies.append((lookup.rawValue, try lookups.measure(lookup, count: lookupCount)))
        }
        report.storedCount = try lookups.storedCount()
        report.anonymousByteCount = try target.process?.usage().anonymousByteCount
        try TextFile.printOut(report.printed(as: format))
    }

    /// Users of an earlier run stay as they are.
    private func importUsers(_ connection: Connection) throws -> UsersReport.Import {
        let process = target.process
        let before = try process?.usage()
        var anonymousByteCountMax = before?.anonymousByteCount
        let start = Instant.now
        let now = Clock.system.now().microseconds
        let count = userCount
        let created = try ImportStream.importUsers(
            count, first: UsersImportRequest(tenantID: tenantID, spec: ScaleUser.spec(), onConflict: .skip),
            over: connection, user: { ScaleUser.user($0, of: count, now: now) }
        ) {
            if let usage = try process?.usage() {
                anonymousByteCountMax = max(anonymousByteCountMax ?? 0, usage.anonymousByteCount)
            }
        }
        let seconds = Double(Instant.now.nanoseconds(since: start)) / 1e9
        let after = try process?.usage()
        var imported = UsersReport.Import(userCount: count, createdCount: created, seconds: seconds)
        if let before, let after {
            imported.cpuSeconds = Double(after.cpuMicroseconds - before.cpuMicroseconds) / 1e6
        }
        imported.anonymousByteCountMax = anonymousByteCountMax
        return imported
    }
}

/// The result of a run.
struct UsersReport {
    struct Import {
        let userCount: Int
        let createdCount: Int
        let seconds: Double
        /// The CPU time of the server; nil when its process is not known, as in the fields below.
        var cpuSeconds: Double?
        /// The most memory that was seen during the import.
        var anonymousByteCountMax: Int?
    }

    let imported: Import
    var latencies: [(name: String, nanoseconds: Histogram)]
    /// The answer of Users.Count.
    var storedCount: Int64 = 0
    var anonymousByteCount: Int?

    private static let shares = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)]

    func printed(as format: OutputFormat) -> String {
        format == .table ? table : String(decoding: json.prettyPrinted(), as: UTF8.self) + "\n"
    }

    private static func milliseconds(_ latency: Histogram, _ share: Double) -> Double {
        Double(latency.value(atShare: share)) / 1e6
    }

    private var table: String {
        var text = "\(imported.userCount) users, \(imported.createdCount) of them new, "
        text += "imported in \(decimal(imported.seconds, places: 1)) s"
        if let cpu = imported.cpuSeconds { text += ", \(decimal(cpu, places: 1)) s of the server's CPU" }
        if let bytes = imported.anonymousByteCountMax { text += ", RssAnon at most \(bytes / 1024) KiB" }
        text += "\n" + padded("milliseconds", to: 24) + Self.shares.map { padded($0.0, to: -10) }.joined() + "\n"
        for (name, latency) in latencies {
            text += padded(name, to: 24)
            text += Self.shares.map { padded(decimal(Self.milliseconds(latency, $0.1), places: 3), to: -10) }.joined()
            text += "\n"
        }
        text += "Count: \(storedCount) users"
        if let bytes = anonymousByteCount { text += ", RssAnon \(bytes / 1024) KiB" }
        return text + "\n"
    }

    private var json: JSONValue {
        let latencies = latencies.map { name, latency in
            JSONValue.Member(
                Text(name),
                .object(Self.shares.map { .init(Text($0.0), .double(Self.milliseconds(latency, $0.1))) }))
        }
        return .object([
            .init("users", .integer(Int64(imported.userCount))),
            .init("created", .integer(Int64(imported.createdCount))),
            .init("import_seconds", .double(imported.seconds)),
            .init("import_cpu_seconds", imported.cpuSeconds.map { .double($0) } ?? .null),
            .init(
                "import_anonymous_bytes_max", imported.anonymousByteCountMax.map { .integer(Int64($0)) } ?? .null),
            .init("latency_milliseconds", .object(latencies)),
            .init("stored", .integer(storedCount)),
            .init("anonymous_bytes", anonymousByteCount.map { .integer(Int64($0)) } ?? .null),
        ])
    }
}
