import Base
import JSON
import Messages
import PosternClient

/// postern audit …
enum AuditCommands {
    static let all = [list, watch, export, key, verify]

    private static let filterFlags = [
        Flag("user", "UID", "about this user"),
        Flag("kind", "KIND,…", "of these kinds: user-created, call-denied, …"),
        Flag("caller", "ID", "made by this API key or service account"),
        Flag("from", "TIME", "not before: 2026-01-31T12:00:00Z, or how long ago: 24h"), Flag("to", "TIME", "before"),
    ]

    static let list = Command(
        path: ["audit", "list"], methods: ["Audit/ListEvents"],
        summary: "Lists the events of a tenant's log, newest first.",
        example: "-t acme audit list --from 24h --kind tenant-updated,call-denied",
        flags: filterFlags + [Flag("oldest-first", "in the order in which they happened"), limitFlag], isReadOnly: true,
        note: """
            What settings were before and after: postern tenant history ID. \
            Whose a caller's id is: postern apikey list.
            """
    ) { session in
        let request = AuditListEventsRequest(
            tenantID: try session.tenantID(), filter: try filter(session.arguments),
            oldestFirst: session.arguments.isSet("oldest-first"))
        let client = AuditClient(channel: try session.channel())
        try await printPages(session) { token, size in
            var request = request
            request.pageToken = token
            request.pageSize = size
            let page = try await client.listEvents(request, options: session.callOptions())
            return (page.events, page.nextPageToken)
        }
    }

    static let watch = Command(
        path: ["audit", "watch"], methods: ["Audit/WatchEvents"],
        summary: "Prints events as they happen, until Ctrl-C.",
        example: "-t acme audit watch -o ndjson",
        flags: filterFlags + [watchAfterFlag], isReadOnly: true
    ) { session in
        let client = AuditClient(channel: try session.channel())
        let tenantID = try session.tenantID()
        let after = try session.arguments.integer("after", in: -1...Int64.max - 1) ?? 0
        let conditions = try filter(session.arguments)
        try await session.printRecords(
            after: after,
            newest: { options in
                let newest = AuditListEventsRequest(tenantID: tenantID, pageSize: 1)
                return try await client.listEvents(newest, options: options).events.first?.sequence
            },
            open: { after, options in
                let request = AuditWatchEventsRequest(tenantID: tenantID, afterSequence: after, filter: conditions)
                return try await client.watchEvents(request, options: options)
            },
            read: { (message: AuditWatchEventsResponse) in message.event })
    }

    static let export = Command(
        path: ["audit", "export"], methods: ["Audit/ListEvents", "Audit/SignCheckpoint"],
        summary: "Writes a whole log to a new file, with the server's signature of its end; - is standard output.",
        example: "-t acme audit export /audits/acme.ndjson", operands: [.required("file|-")],
        flags: [Flag("after", "SEQUENCE", "only events after this one, the last of an earlier export")],
        isReadOnly: true, prints: .noRecords
    ) { session in
        try await AuditExport(session).run()
    }

    static let key = Command(
        path: ["audit", "key"], methods: ["Audit/GetKey"],
        summary: "Shows the public key of exports, or writes it (PEM) to a new file; - is standard output.",
        example: "audit key /audits/audit-key.pem", operands: [.optional("file|-")], isReadOnly: true
    ) { session in
        let client = AuditClient(channel: try session.channel())
        let key = try await client.getKey(AuditGetKeyRequest(), options: session.callOptions())
        guard let path = session.arguments.operand(0) else { return session.output.print(key) }
        guard path != "-" else { return session.console.write(AuditKeyFile.text(key)) }
        try AuditKeyFile.write(key, to: path)
        session.say("the key \(key.keyID) is in \(path)")
    }

    static let verify = Command(
        path: ["audit", "verify"],
        summary: "Says whether an export holds exactly the events that the server signed; asks no server.",
        example: "audit verify /audits/acme.ndjson --public-key /audits/audit-key.pem", operands: [.required("file")],
        flags: [
            Flag("public-key", "FILE", "the file that audit key wrote, received by another way than the export"),
            Flag("previous", "FILE", "an earlier export: the log must go on from its end"),
        ], isReadOnly: true, takesTenant: true
    ) { session in
        try AuditVerification.run(session)
    }

    private static func filter(_ arguments: Arguments) throws -> EventFilter {
        let now = Clock.system.now()
        return EventFilter(
            uid: try arguments.condition("user"), kinds: try kinds(arguments),
            caller: try arguments.condition("caller"),
            fromMicros: try arguments.boundMicros("from", now: now),
            beforeMicros: try arguments.boundMicros("to", now: now))
    }

    static let kindNames = EventKind.allCases.map { ($0, name(of: $0)) }

    /// `EVENT_KIND_USER_CREATED` is `user-created` on the command line.
    private static func name(of kind: EventKind) -> String {
        let words = (kind.json.string ?? "").split(separator: "_").dropFirst(2)
        return words.joined(separator: "-").lowercased()
    }

    private static func kinds(_ arguments: Arguments) throws(CommandError) -> [EventKind] {
        var kinds: [EventKind] = []
        // No kind means all kinds.
        for word in try arguments.elements("kind") ?? [] {
            guard let kind = kindNames.first(where: { $0.1 == word })?.0 else {
                throw .usage(
                    "--kind: there is no kind \(word)",
                    hint: nearest(to: word, in: kindNames.map(\.1)).map { "did you mean \($0)?" }
                        ?? "one of " + kindNames.map(\.1).joined(separator: ", "))
            }
            kinds.append(kind)
        }
        return kinds
    }
}
