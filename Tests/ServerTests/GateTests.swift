import Base
import Identity
import Messages
import Rules
import TestSupport
import Testing
import Wire

@testable import Service

/// What every method requires of its caller, as one table over all registered methods. The server does what proto/
/// says, also for methods that are added later.
@Suite struct GateTests {
    struct Caller: Sendable, CustomTestStringConvertible {
        let name: String
        let role: Role
        /// Nil: all tenants.
        let tenantID: Text?
        var isGenuine = true

        var testDescription: String { name }

        static let all: [Caller] = {
            var callers = [
                Caller(name: "nobody", role: .unspecified, tenantID: nil, isGenuine: false),
                Caller(name: "an unknown key", role: .unspecified, tenantID: nil, isGenuine: false),
                Caller(name: "a revoked project admin", role: .projectAdmin, tenantID: nil, isGenuine: false),
                Caller(name: "project-admin", role: .projectAdmin, tenantID: nil),
            ]
            for role in [Role.verifier, .app, .tenantAdmin] {
                callers.append(Caller(name: "\(role.name) of all tenants", role: role, tenantID: nil))
                callers.append(Caller(name: "\(role.name) of acme", role: role, tenantID: "acme"))
                callers.append(Caller(name: "\(role.name) of the default pool", role: role, tenantID: ""))
            }
            return callers
        }()
    }

    /// The reasons that only the gate gives.
    private static let gateReasons: Set<String> = [
        "CALLER_UNAUTHENTICATED", "INSUFFICIENT_PERMISSION", "TENANT_NOT_FOUND", "PROJECT_DISABLED",
    ]

    @Test(arguments: Caller.all) func everyMethodAsksWhatItsProtoSays(_ caller: Caller) async throws {
        try await withServer { server in
            try Self.makeTenants(server)
            let key = try Self.makeKey(server, caller)
            let client = try server.connect(authenticated: false)
            _ = try client.hello()
            client.apiKey = key
            var named = 0
            for method in server.instance.router.registry.all.map(\.descriptor) {
                for tenantID in ["acme", "shut", "gone", ""] as [Text] {
                    // Methods that make and delete tenants get a name of their own each time.
                    named += 1
                    let requested = method.tenant == .named ? Text("named-\(named)") : tenantID
                    let expected = Self.expected(method, caller, requested)
                    let reason = try Self.reason(client, method, requested)
                    let passed = Self.gateReasons.contains(reason) && method.tenant != .named ? reason : nil
                    #expect(
                        (expected ?? "passes") == (expected == nil ? passed ?? "passes" : reason),
                        "\(method.fullName) for tenant \"\(requested)\"")
                }
            }
        }
    }

    private static func expected(_ method: MethodDescriptor, _ caller: Caller, _ tenantID: Text) -> String? {
        if method.role == .unspecified { return nil }
        if !caller.isGenuine { return "CALLER_UNAUTHENTICATED" }
        if caller.role.rawValue < method.role.rawValue { return "INSUFFICIENT_PERMISSION" }
        if method.tenant == .unspecified { return nil }
        let isBoundElsewhere = caller.tenantID.map { !tenantID.isEmpty && tenantID != $0 } ?? false
        if isBoundElsewhere { return "INSUFFICIENT_PERMISSION" }
        guard method.tenant == .request else { return nil }
        switch tenantID.isEmpty ? caller.tenantID ?? .empty : tenantID {
        case "gone": return "TENANT_NOT_FOUND"
        case "shut":
            let isExempt = caller.role == .projectAdmin && method.role.rawValue >= Role.tenantAdmin.rawValue
            return method.refusedWhenDisabled && !isExempt ? "PROJECT_DISABLED" : nil
        default: return nil
        }
    }

    /// The reason of the answer; "" for a success and for a stream that goes on.
    private static func reason(
        _ client: RawClient, _ method: MethodDescriptor, _ tenantID: Text
    ) throws -> String {
        // tenant_id is field 1 wherever a method is about a tenant.
        let request = method.tenant == .unspecified ? AnyMessage([]) : AnyMessage(TenantsGetRequest(tenantID: tenantID))
        return try client.refusal(of: method, request)?.reason.description ?? ""
    }

    private static func makeTenants(_ server: TestServer) throws {
        let admin = try server.connect()
        for tenantID in ["acme", "shut"] as [Text] {
            let _: TenantsCreateResponse = try admin.call(
                "postern.v1.Tenants/Create",
                TenantsCreateRequest(
                    tenantID: tenantID, tenant: Messages.Tenant(disableAuth: tenantID == "shut"),
                    updateMask: ProtobufFieldMask(paths: ["disable_auth"])))
        }
    }

    private static func makeKey(_ server: TestServer, _ caller: Caller) throws -> Secret? {
        switch caller.name {
        case "nobody": return nil
        case "an unknown key":
            return Secret([UInt8]("pk_abcdefghijkl_0123456789012345678901234567890123456789012".utf8))
        default: break
        }
        let admin = try server.connect()
        let made: ProjectCreateApiKeyResponse = try admin.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(
                role: caller.role, scope: Scope(tenants: caller.tenantID.map { .tenantID($0) } ?? .all(true))))
        if !caller.isGenuine {
            let _: ProjectRevokeApiKeyResponse = try admin.call(
                "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: made.apiKey?.apiKeyID ?? ""))
        }
        return made.secretKey
    }

    // MARK: What the table presumes

    @Test func disablingAuthRefusesExactlyWhatIsAboutUsersAndTheirTokens() async throws {
        try await withServer { server in
            let methods = server.instance.router.registry.all.map(\.descriptor)
            #expect(methods.count > 30)
            let refusing: Set<String> = ["Accounts", "Tokens", "Users", "Sessions"]
            for method in methods {
                let service = method.service.split(separator: ".").last.map(String.init) ?? ""
                // The project's published keys belong to no tenant, and verifiers must hear that a tenant is disabled.
                let isExpected =
                    refusing.contains(service) && method.tenant == .request && method.method != "WatchRevocations"
                #expect(method.refusedWhenDisabled == isExpected, "\(method.fullName)")
                if method.tenant != .unspecified { #expect(method.role != .unspecified, "\(method.fullName)") }
            }
        }
    }

    @Test func aRevokedKeyIsRefusedFromTheNextRequestOnAnOpenConnection() async throws {
        try await withServer { server in
            let admin = try server.connect()
            let made: ProjectCreateApiKeyResponse = try admin.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .all(true))))
            let byRequest = try server.connect(authenticated: false)
            byRequest.apiKey = made.secretKey
            let byHello = try server.connect(authenticated: false)
            let bearer = made.secretKey.bearer
            _ = try byHello.hello(WireHello(protocolVersion: 1, software: "raw", authorization: bearer))
            for client in [byRequest, byHello] {
                let _: ProjectServerInfoResponse = try client.call(
                    "postern.v1.Project/ServerInfo", ProjectServerInfoRequest())
            }
            let _: ProjectRevokeApiKeyResponse = try admin.call(
                "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: made.apiKey?.apiKeyID ?? ""))
            for client in [byRequest, byHello] {
                let refused = failure {
                    let _: ProjectServerInfoResponse = try client.call(
                        "postern.v1.Project/ServerInfo", ProjectServerInfoRequest())
                }
                #expect(refused.code == .unauthenticated && refused.reason == "CALLER_UNAUTHENTICATED")
            }
        }
    }

    @Test func aKeyBoundToATenantMeansThatTenantWhereNoneIsNamed() async throws {
        try await withServer { server in
            try Self.makeTenants(server)
            let client = try server.connect(authenticated: false)
            client.apiKey = try Self.makeKey(
                server, Caller(name: "admin", role: .tenantAdmin, tenantID: "acme"))
            let made: UsersCreateResponse = try client.call(
                "postern.v1.Users/Create", UsersCreateRequest(email: "ada@example.com"))
            #expect(made.user?.tenantID == "acme")
        }
    }
}
