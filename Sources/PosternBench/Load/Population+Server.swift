import Base
import Messages
import Wire

// Checks that a server is the one that was seeded.
extension Population {
    /// Reads the state file. Refuses a server that the file is not for, and one that was seeded only in part.
    static func load(_ path: String, over connection: Connection) throws -> Population {
        let population = try StateFile.read(path)
        let found = try population.originAsFound(over: connection)
        try population.checkOrigin(found, path)
        guard population.done.isComplete else {
            throw BenchError(.notReady, "\(path): seeding was cut short: run `postern-bench seed` again")
        }
        return population
    }

    func checkOrigin(_ found: Origin, _ path: String) throws(BenchError) {
        guard let origin, !origin.matches(found) else { return }
        throw BenchError(
            .notReady,
            """
            \(path) is of another server: of project \(origin.projectID), whose tenant \(tenantID) was made at \
            \(origin.tenantCreatedAt); here are project \(found.projectID) and \(found.tenantCreatedAt). Seed this one \
            with another --state
            """)
    }

    /// The origin of the server as it is. Tenants of several kinds count as production, or as unknown if one is
    /// unknown.
    func originAsFound(over connection: Connection) throws -> Origin {
        let projectID = try connection.call(
            service: "postern.v1.Project", method: "WhoAmI", ProjectWhoAmIRequest()
        ) { result -> Text in
            switch result {
            case .ok(let message): try ProjectWhoAmIResponse(decoding: message).projectID
            case .refused(let reason): throw BenchError(.notReady, "the server refuses the key: \(reason)")
            }
        }
        var found: [(createdAt: Int64, hashes: Hashes)?] = Array(repeating: nil, count: tenantCount)
        try connection.pipeline(count: tenantCount, inFlight: 16) { number, stream, buffer in
            buffer.appendRequest(stream: stream, service: "postern.v1.Tenants", method: "Get") {
                TenantsGetRequest(tenantID: tenantID(number)).encode(into: &$0)
            }
        } answered: { number, result in
            guard case .ok(let message) = result, let tenant = try TenantsGetResponse(decoding: message).tenant else {
                return
            }
            found[number] = (tenant.createdAtMicros, tenant.synthetic ? .synthetic : .production)
        }
        // A load on tenants of which one is not synthetic is a load on a production tenant.
        let kinds = Set(found.map { $0?.hashes ?? .unknown })
        let mixed: Hashes = kinds.contains(.unknown) ? .unknown : .production
        let hashes = kinds.count == 1 ? kinds.first ?? .unknown : mixed
        return Origin(projectID: projectID, tenantCreatedAt: found.first??.createdAt ?? 0, hashes: hashes)
    }
}
