import Base
import Messages
import PosternClient

/// postern denials …
enum DenialCommands {
    static let all = [list, watch]

    static let list = Command(
        path: ["denials", "list"], methods: ["Tenants/ListDenials", "Tenants/ListAllDenials"],
        summary: "Lists what the self-service toggles refused, newest first.",
        example: "-t acme denials list --from 24h",
        flags: [
            Flag("from", "TIME", "not before: 2026-01-31T12:00:00Z, or how long ago: 24h"),
            Flag("to", "TIME", "before"), Flag("counts", "how often per hour instead of each"),
            Flag("email", "ADDRESS", "refused to this address, which must be whole: the log keeps a hash of it only"),
            Flag("phone", "NUMBER", "refused to this phone number, for example +14155550123"),
            Flag("decision", "ID", "the refusal with this decision id, which a refused user quotes"),
            Flag("all-tenants", "of every tenant, tenant by tenant"), limitFlag,
        ], isReadOnly: true
    ) { session in
        let arguments = session.arguments
        let now = Clock.system.now()
        if arguments.isSet("all-tenants") { return try await listAll(session, now: now) }
        let request = TenantsListDenialsRequest(
            tenantID: try session.tenantID(), fromMicros: try arguments.boundMicros("from", now: now),
            toMicros: try arguments.boundMicros("to", now: now),
            email: try arguments.condition("email"), phoneNumber: try arguments.condition("phone"),
            decisionID: try arguments.condition("decision"))
        let client = TenantsClient(channel: try session.channel())
        if arguments.isSet("counts") {
            let limit: Int64 = try arguments.integer("limit", in: 1...Int64.max) ?? .max
            let options = try session.callOptions()
            let counts = try await request.allCounts(countMax: Int(clamping: limit)) { request throws(Failure) in
                try await client.listDenials(request, options: options)
            }
            return session.output.print(counts)
        }
        try await printPages(session) { token, size in
            var request = request
            request.pageToken = token
            request.pageSize = size
            let page = try await client.listDenials(request, options: session.callOptions())
            return (page.denials, page.nextPageToken)
        }
    }

    private static func listAll(_ session: Session, now: Timestamp) async throws {
        let arguments = session.arguments
        guard !arguments.isSet("counts") else {
            throw CommandError.usage("--counts is of one tenant", hint: "leave --all-tenants out")
        }
        let request = TenantsListAllDenialsRequest(
            fromMicros: try arguments.boundMicros("from", now: now),
            toMicros: try arguments.boundMicros("to", now: now),
            email: try arguments.condition("email"), phoneNumber: try arguments.condition("phone"),
            decisionID: try arguments.condition("decision"))
        let client = TenantsClient(channel: try session.channel())
        try await printPages(session) { token, size in
            var request = request
            request.pageToken = token
            request.pageSize = size
            let page = try await client.listAllDenials(request, options: session.callOptions())
            return (page.denials, page.nextPageToken)
        }
    }

    static let watch = Command(
        path: ["denials", "watch"], methods: ["Tenants/WatchDenials"],
        summary: "Prints refusals as they happen, until Ctrl-C.",
        example: "-t acme denials watch -o ndjson",
        flags: [watchAfterFlag], isReadOnly: true
    ) { session in
        let client = TenantsClient(channel: try session.channel())
        let tenantID = try session.tenantID()
        try await session.printRecords(
            after: try session.arguments.integer("after", in: -1...Int64.max) ?? 0,
            newest: { options in
                let newest = TenantsListDenialsRequest(tenantID: tenantID, pageSize: 1)
                return try await client.listDenials(newest, options: options).denials.first?.sequence
            },
            open: { after, options in
                let request = TenantsWatchDenialsRequest(tenantID: tenantID, afterSequence: after)
                return try await client.watchDenials(request, options: options)
            },
            read: { (message: TenantsWatchDenialsResponse) in message.denial })
    }
}
