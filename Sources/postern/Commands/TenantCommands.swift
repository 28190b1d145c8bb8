import Base
import Messages
import PosternClient

/// postern tenant …
enum TenantCommands {
    static let all = [create, get, usage, list, update, delete] + TenantManyCommands.all

    static let create = Command(
        path: ["tenant", "create"], methods: ["Tenants/Create"],
        summary: "Creates a tenant; without an id the server makes one.",
        example: "tenant create acme --display-name \"Acme Corp\"", operands: [.optional("tenant-id")],
        tenantOperand: 0,
        flags: TenantSettings.flags + [
            Flag("template", "ID", "begin with the settings of this tenant, as copy-settings copies them"),
            Flag("synthetic", "true|false", "for load tests: cheap hashes, no throttling"),
        ],
        isValidatable: true, takesTenant: false
    ) { session in
        var settings = try TenantSettings(session.arguments)
        if let synthetic = try session.arguments.bool("synthetic") {
            settings.tenant.synthetic = synthetic
            settings.paths.append("synthetic")
        }
        // An empty one would be no template, and the tenant would have the default settings.
        guard session.arguments.value("template") != "" else {
            throw CommandError.usage("--template is empty", hint: "leave it out for the default settings")
        }
        let request = TenantsCreateRequest(
            tenantID: session.arguments.operand(0).map { Text($0) } ?? .empty, tenant: settings.tenant,
            updateMask: ProtobufFieldMask(paths: settings.paths), validateOnly: session.isValidatingOnly,
            templateTenantID: session.arguments.text("template") ?? .empty)
        let tenant = try await client(session).create(request, options: session.callOptions()).tenant
        session.output.print(tenant ?? Tenant())
    }

    static let get = Command(
        path: ["tenant", "get"], methods: ["Tenants/Get"],
        summary: "Shows a tenant; without an id --tenant's, or the default pool.",
        example: "tenant get acme", operands: [.optional("tenant-id")], tenantOperand: 0, isReadOnly: true
    ) { session in
        let request = TenantsGetRequest(tenantID: try tenantID(session))
        session.output.print(try await client(session).get(request, options: session.callOptions()).tenant ?? Tenant())
    }

    static let usage = Command(
        path: ["tenant", "usage"], methods: ["Tenants/GetUsage"],
        summary: "Shows what a tenant uses of its quotas; without an id --tenant's, or the default pool.",
        example: "tenant usage acme", operands: [.optional("tenant-id")], tenantOperand: 0, isReadOnly: true
    ) { session in
        let request = TenantsGetUsageRequest(tenantID: try tenantID(session))
        session.output.print(try await client(session).getUsage(request, options: session.callOptions()).quotas)
    }

    static let list = Command(
        path: ["tenant", "list"], methods: ["Tenants/List"], summary: "Lists the tenants.",
        example: "tenant list --where enable-anonymous-user=true",
        flags: [TenantFilterFlag.flag, limitFlag], isReadOnly: true
    ) { session in
        let client = try client(session)
        let filter = try TenantFilterFlag(session.arguments)?.filter
        try await printPages(session) { token, size in
            let request = TenantsListRequest(pageSize: size, pageToken: token, filter: filter)
            let page = try await client.list(request, options: session.callOptions())
            return (page.tenants, page.nextPageToken)
        }
    }

    static let update = Command(
        path: ["tenant", "update"], methods: ["Tenants/Update", "Tenants/UpdateMany"],
        summary: "Changes the settings that are given; without an id --tenant's, or the default pool's.",
        example: "tenant update acme --disabled-user-signup true", operands: [.optional("tenant-id")],
        tenantOperand: 0,
        flags: TenantSettings.flags + [
            Flag("end-sessions-without-second-factor", "signs out whoever did not show one; says how many sessions"),
            Flag("if-revision", "N", "only while the settings have this revision"), TenantFilterFlag.flag,
        ], isValidatable: true
    ) { session in
        var settings = try TenantSettings(session.arguments)
        guard !settings.paths.isEmpty else {
            throw CommandError.usage(
                "nothing to change", hint: "postern tenant update acme --disabled-user-signup true")
        }
        if let filter = try TenantFilterFlag(session.arguments) {
            return try await TenantManyCommands.update(settings, filter, session)
        }
        let tenantID = try tenantID(session)
        if settings.tenant.suspended {
            try session.confirm("Refuse everybody of \(ChangeTarget.title(tenantID)), its admins too, from now on?")
        } else if settings.tenant.disableAuth {
            try session.confirm("Refuse everybody of \(ChangeTarget.title(tenantID)) from now on?")
        }
        var revision: Int64 = 0
        if settings.isGuidancePartial {
            let request = TenantsGetRequest(tenantID: tenantID)
            let present = try await client(session).get(request, options: session.callOptions()).tenant
            settings.complete(guidance: present?.guidance ?? Guidance())
            // An update replaces the whole guidance: it must not undo what another admin has set meanwhile.
            revision = present?.revision ?? 0
        }
        let request = TenantsUpdateRequest(
            tenantID: tenantID, tenant: settings.tenant, updateMask: ProtobufFieldMask(paths: settings.paths),
            validateOnly: session.isValidatingOnly,
            endSessionsWithoutSecondFactor: session.arguments.isSet("end-sessions-without-second-factor"),
            expectedRevision: try session.arguments.integer("if-revision", in: 1...Int64.max) ?? revision)
        let response = try await client(session).update(request, options: session.callOptions())
        session.output.print(response.tenant ?? Tenant())
        if request.endSessionsWithoutSecondFactor { session.say("sessions ended: \(response.endedSessionCount)") }
    }

    static let delete = Command(
        path: ["tenant", "delete"], methods: ["Tenants/Delete"],
        summary: "Deletes a tenant and all of its users, for good.",
        example: "tenant delete acme --confirm=acme", operands: [.required("tenant-id")],
        tenantOperand: 0, isValidatable: true, prints: .noRecords, asksForName: true
    ) { session in
        let name = session.arguments.operands[0]
        try session.confirm("This deletes the tenant \(name) with all of its users, for good.", byName: name)
        let request = TenantsDeleteRequest(tenantID: Text(name), validateOnly: session.isValidatingOnly)
        _ = try await client(session).delete(request, options: session.callOptions())
        session.say("tenant \(name) deleted")
    }

    private static func client(_ session: Session) throws -> TenantsClient {
        TenantsClient(channel: try session.channel())
    }

    private static func tenantID(_ session: Session) throws -> Text {
        try session.arguments.operand(0).map { Text($0) } ?? session.tenantID()
    }

    /// The words that confirm a severe change of the tenant. No tenant id has a space.
    static func confirmedName(_ tenantID: Text) -> String { tenantID.isEmpty ? "default pool" : tenantID.string }

    static func title(_ tenantID: Text) -> String { tenantID.isEmpty ? "the default pool" : "tenant \(tenantID)" }
}
