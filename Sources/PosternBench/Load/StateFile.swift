import Base
import JSON

/// The file that `seed` writes and other commands read. Its first line is the manifest, in JSON, which describes the
/// seeded data. Then comes a line for each session.
enum StateFile {
    private static let version: Int64 = 2

    static func read(_ path: String) throws(BenchError) -> Population {
        try decode(TextFile.read(path), from: path)
    }

    static func write(_ population: Population, to path: String) throws(BenchError) {
        try TextFile.write(encode(population), to: path)
    }

    static func encode(_ population: Population) -> [UInt8] {
        let origin = population.origin
        let manifest: JSONValue = .object([
            .init("postern_bench_state", .integer(version)),
            .init("project_id", origin.map { .string($0.projectID) } ?? .null),
            .init("tenant_created_at_micros", .integer(origin?.tenantCreatedAt ?? 0)),
            .init("hashes", .string(Text((origin?.hashes ?? .unknown).rawValue))),
            .init("tenant", .string(population.tenantName)), .init("tenants", .integer(Int64(population.tenantCount))),
            .init("zipf", .double(population.zipf)), .init("seed", .integer(Int64(population.seed))),
            .init("users", .integer(Int64(population.userCount))),
            .init("password_users", .integer(Int64(population.passwordUserCount))),
            .init("sessions", .integer(Int64(population.sessions.count))),
            .init("users_done", .integer(Int64(population.done.users))),
            .init("password_users_done", .integer(Int64(population.done.passwordUsers))),
            .init("sessions_began_at_micros", .integer(population.done.sessionsBeganAt)),
            .init("complete", .bool(population.done.isComplete)),
        ])
        var bytes = manifest.serialized() + [UInt8(ascii: "\n")]
        for session in population.sessions {
            bytes += [UInt8]("\(session.tenant) ".utf8) + session.idToken
            bytes.append(UInt8(ascii: " "))
            bytes += session.refreshToken
            bytes.append(UInt8(ascii: "\n"))
        }
        return bytes
    }

    static func decode(_ bytes: [UInt8], from path: String) throws(BenchError) -> Population {
        let malformed = BenchError(
            .notReady, "\(path) is no state file of this version: run `postern-bench seed` with another --state")
        var lines = bytes.split(separator: UInt8(ascii: "\n"))[...]
        guard let head = lines.popFirst(), let json = try? JSONValue(parsing: [UInt8](head)),
            var population = population(json), lines.count == json["sessions"]?.integer.map({ Int($0) })
        else { throw malformed }
        for line in lines {
            let parts = line.split(separator: UInt8(ascii: " "))
            guard parts.count == 3, let tenant = Int(String(decoding: parts[0], as: UTF8.self)),
                (0..<population.tenantCount).contains(tenant)
            else { throw malformed }
            population.sessions.append(
                Session(tenant: tenant, idToken: [UInt8](parts[1]), refreshToken: [UInt8](parts[2])))
        }
        return population
    }

    /// The population without its sessions; nil when a member is missing or out of its range.
    private static func population(_ json: JSONValue) -> Population? {
        func count(_ name: Text, _ range: ClosedRange<Int64>) -> Int? {
            json[name]?.integer.flatMap { range.contains($0) ? Int($0) : nil }
        }
        let most: Int64 = 1_000_000_000
        guard json["postern_bench_state"]?.integer == version, let tenant = json["tenant"]?.text,
            let tenants = count("tenants", 1...Int64(Population.tenantsMax)), let zipf = json["zipf"]?.double,
            (0...Zipf.exponentMax).contains(zipf), let seed = count("seed", 0...Int64.max),
            let users = count("users", 0...most), let passwordUsers = count("password_users", 0...most),
            let usersDone = count("users_done", 0...most), let passwordDone = count("password_users_done", 0...most),
            let began = json["sessions_began_at_micros"]?.integer,
            let created = json["tenant_created_at_micros"]?.integer,
            let hashes = json["hashes"]?.string.flatMap(Hashes.init(rawValue:)), let complete = json["complete"]?.bool
        else { return nil }
        var population = Population(tenantID: tenant)
        (population.tenantCount, population.zipf, population.seed) = (tenants, zipf, seed)
        (population.userCount, population.passwordUserCount) = (users, passwordUsers)
        population.done = Population.Progress(
            users: usersDone, passwordUsers: passwordDone, sessionsBeganAt: began, isComplete: complete)
        if let projectID = json["project_id"]?.text {
            population.origin = Population.Origin(projectID: projectID, tenantCreatedAt: created, hashes: hashes)
        }
        return population
    }
}
