import Base
import JSON
import Messages
import PosternClient

/// postern tenant history|copy-settings, and the update of many tenants.
enum TenantManyCommands {
    static let all = [history, copySettings]

    static let history = Command(
        path: ["tenant", "history"], methods: ["Audit/ListSettingsChanges"],
        summary: "Lists who changed a tenant's settings, when, from what to what; newest first.",
        example: "tenant history acme --limit 10", operands: [.optional("tenant-id")], tenantOperand: 0,
        flags: [limitFlag],
        isReadOnly: true
    ) { session in
        let client = AuditClient(channel: try session.channel())
        let tenantID = try session.arguments.operand(0).map { Text($0) } ?? session.tenantID()
        try await printPages(session) { token, size in
            let request = AuditListSettingsChangesRequest(tenantID: tenantID, pageSize: size, pageToken: token)
            let page = try await client.listSettingsChanges(request, options: session.callOptions())
            return (page.events.map { SettingsEvent(event: $0) }, page.nextPageToken)
        }
    }

    static let copySettings = Command(
        path: ["tenant", "copy-settings"], methods: ["Tenants/CopySettings"],
        summary: "Makes settings of a tenant what they are in another one; nothing that is secret is copied.",
        example: "tenant copy-settings template acme", operands: [.required("from"), .required("to")],
        tenantOperand: 1,
        flags: [Flag("settings", "PATH,…", "only these, as tenant history names them (default: all that are copied)")],
        isValidatable: true
    ) { session in
        let operands = session.arguments.operands
        // An older server would take the default pool's settings.
        guard !operands[0].isEmpty else {
            throw CommandError.usage("name the tenant to copy from: the default pool is no template")
        }
        let request = TenantsCopySettingsRequest(
            tenantID: Text(operands[1]), templateTenantID: Text(operands[0]),
            paths: try session.arguments.list("settings") ?? [],
            validateOnly: session.isValidatingOnly)
        let client = TenantsClient(channel: try session.channel())
        session.output.print(
            try await client.copySettings(request, options: session.callOptions()).tenant ?? Tenant())
    }

    /// `postern tenant update --where …`
    static func update(
        _ settings: TenantSettings, _ filter: TenantFilterFlag, _ session: Session
    ) async throws {
        guard session.arguments.operands.isEmpty else {
            throw CommandError.usage("name a tenant or --where, not both")
        }
        for flag in ["end-sessions-without-second-factor", "if-revision"]
        where session.arguments.isSet(flag) || session.arguments.value(flag) != nil {
            throw CommandError.usage("--\(flag) is for one tenant: it does not go with --where")
        }
        guard !settings.isGuidancePartial else {
            throw CommandError.usage(
                "with --where the guidance is set as a whole", hint: "add --guidance-message, -url and -locale")
        }
        if !session.isValidatingOnly {
            let which = TenantFilterFlag.title(session.arguments) ?? ""
            try session.confirm("Change \(settings.paths.map(\.string).joined(separator: ", ")) of \(which)?")
        }
        let request = TenantsUpdateManyRequest(
            filter: filter.filter, allTenants: filter.filter == nil, tenant: settings.tenant,
            updateMask: ProtobufFieldMask(paths: settings.paths), validateOnly: session.isValidatingOnly)
        try await run(request, session)
    }

    private static func run(_ first: TenantsUpdateManyRequest, _ session: Session) async throws {
        let client = TenantsClient(channel: try session.channel())
        let output = session.output
        var (request, changed, unchanged, isComplete) = (first, 0, 0, false)
        // One document is printed at the end, also if a later page fails: it says what was changed.
        var collected: [TenantUpdateResult] = []
        defer { if output.isOneDocument, isComplete || !collected.isEmpty { output.print(collected) } }
        // The changes go on when standard output fails: a reader that leaves, as in `… | head`, must not leave half of
        // the tenants unchanged.
        try await makeCalls(session, done: changed == 0 ? nil : "\(changed) tenants were changed before") {
            repeat {
                let page = try await client.updateMany(request, options: session.callOptions())
                for result in page.results {
                    if output.isOneDocument { collected.append(result) } else { output.printNext(result) }
                    if result.change == nil { unchanged += 1 } else { changed += 1 }
                }
                request.pageToken = page.nextPageToken
            } while !request.pageToken.isEmpty
        }
        isComplete = true
        session.say("tenants changed: \(changed), as they should be already: \(unchanged)")
    }
}

/// A change of settings, read from its event.
private struct SettingsEvent: Record {
    static let columns = ["revision", "time_micros", "caller", "path", "before", "after"]

    let event: AuditEvent

    /// A row for each setting, after a row that says that the tenant was created. Older servers keep changes that left
    /// all settings as they were: such a change has one row.
    var rows: [JSONValue] {
        let changes = event.settingsChange?.json["changes"]?.array ?? []
        let created: [JSONValue] = event.kind == .tenantCreated ? [["path": "(created)"]] : []
        let rows = created + changes
        return (rows.isEmpty ? [["path": "(as it was)"]] : rows).map { change in
            [
                "revision": .integer(event.settingsChange?.revision ?? 0), "time_micros": .integer(event.timeMicros),
                "caller": .string(event.caller), "path": change["path"] ?? .null,
                "before": change["before"] ?? .null, "after": change["after"] ?? .null,
            ]
        }
    }

    var id: String { String(event.settingsChange?.revision ?? 0) }

    var json: JSONValue {
        [
            "revision": .integer(event.settingsChange?.revision ?? 0), "time_micros": .integer(event.timeMicros),
            "caller": .string(event.caller), "request_id": .string(event.requestID),
            "event_sequence": .integer(event.sequence),
            "changes": event.settingsChange?.json["changes"] ?? .array([]),
        ]
    }
}

extension TenantUpdateResult: Record {
    static let columns = ["tenant_id", "is_changed", "change.changes"]

    var id: String { tenantID.string }

    var json: JSONValue {
        [
            "tenant_id": .string(tenantID), "is_changed": .bool(change != nil),
            "change": change?.json ?? .null,
        ]
    }
}

extension SettingsChange {
    /// The changed settings one by one. Settings that the message does not name are left out.
    var json: JSONValue {
        let changes = paths.map { path -> JSONValue in
            func value(_ tenant: Tenant?) -> JSONValue {
                guard let tenant else { return .null }
                return path.string.split(separator: ".").reduce(tenant.json) { $0[Text(String($1))] ?? .null }
            }
            return ["path": .string(path), "before": value(before), "after": value(after)]
        }
        return ["revision": .integer(revision), "changes": .array(changes)]
    }
}

extension TenantDenial: Record {
    static let columns = [
        "tenant_id", "denial.sequence", "denial.time_micros", "denial.toggle", "denial.operation", "denial.decision_id",
        "denial.uid", "denial.suppressed_count",
    ]

    var id: String { "\(tenantID) \(denial?.sequence ?? 0)" }
}
