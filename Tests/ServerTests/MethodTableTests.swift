import Base
import Identity
import Messages
import Store
import TestSupport
import Testing
import Wire

@testable import Service

/// Compares the answers of every method to six callers with a table that people wrote (`MethodTable`), and not with
/// what proto/ says: a change of who may call what changes a row of that table.
@Suite struct MethodTableTests {
    /// In the order of the table's columns.
    private enum Column: Int, CaseIterable {
        case nobody, verifier, app, otherAdmin, admin, projectAdmin

        var role: Role? {
            switch self {
            case .nobody: nil
            case .verifier: .verifier
            case .app: .app
            case .otherAdmin, .admin: .tenantAdmin
            case .projectAdmin: .projectAdmin
            }
        }

        var scope: Scope {
            switch self {
            case .otherAdmin: Scope(tenants: .tenantID("beta"))
            case .projectAdmin: Scope(tenants: .all(true))
            case .nobody, .verifier, .app, .admin: Scope(tenants: .tenantID("acme"))
            }
        }
    }

    private static let rows = MethodTable.all.merging(MethodTable.aliases) { first, _ in first }

    @Test func everyMethodIsInTheTableAndNothingElse() async throws {
        try await withServer { server in
            let names = server.instance.router.registry.all.map(\.descriptor.fullName)
            #expect(Set(names) == Set(Self.rows.keys))
        }
    }

    @Test func everyMethodAnswersEachCallerAsTheTableSays() async throws {
        try await withServer { server in
            let admin = try server.connect()
            for tenantID in ["acme", "beta"] as [Text] {
                let _: TenantsCreateResponse = try admin.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
            }
            var found: [String: [String]] = [:]
            for column in Column.allCases {
                let client = try server.connect(authenticated: false)
                _ = try client.hello()
                if let role = column.role {
                    let made: ProjectCreateApiKeyResponse = try admin.call(
                        "postern.v1.Project/CreateApiKey", ProjectCreateApiKeyRequest(role: role, scope: column.scope))
                    client.apiKey = made.secretKey
                }
                for method in server.instance.router.registry.all.map(\.descriptor) {
                    // The last column would make, change and delete what the others ask for, so it comes last.
                    let answer = try Self.answer(client, method)
                    found[method.fullName, default: []].append(answer)
                }
            }
            for (name, answers) in found {
                let row = Self.rows[name]?.rawValue
                #expect(row == answers.joined(separator: " "), "\(name) \(answers.joined(separator: " "))")
            }
        }
    }

    /// "key": a credential is wanted. "role", "tenant": the caller's does not suffice. "yes": the handler ran.
    private static func answer(_ client: RawClient, _ method: MethodDescriptor) throws -> String {
        let isAboutTenant = method.tenant == .request
        let tenantID: Text = method.tenant == .named ? "nobodys-tenant" : "acme"
        let request =
            isAboutTenant || method.tenant == .named
            ? TenantsGetRequest(tenantID: tenantID) : TenantsGetRequest()
        return try client.refusal(of: method, request).map(word) ?? "yes"
    }

    private static func word(for failure: Failure) -> String {
        switch failure.reason {
        case "CALLER_UNAUTHENTICATED": "key"
        case "INSUFFICIENT_PERMISSION":
            failure.metadata.contains { $0.key == "required_role" } ? "role" : "tenant"
        default: "yes"
        }
    }

    // MARK: Another tenant's user

    /// Every method is called by an admin of one tenant about a user of another: whatever it answers, it tells nothing
    /// of that user and changes nothing.
    @Test func noMethodReachesAUserOfAnotherTenant() async throws {
        try await withServer { server in
            let admin = try server.connect()
            for tenantID in ["acme", "beta"] as [Text] {
                let _: TenantsCreateResponse = try admin.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
            }
            let _: UsersCreateResponse = try admin.call(
                "postern.v1.Users/Create",
                UsersCreateRequest(
                    tenantID: "beta", uid: "victim", email: "victim@secret.example", displayName: "Vera Untold"))
            let made: ProjectCreateApiKeyResponse = try admin.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .tenantID("acme"))))
            let client = try server.connect(authenticated: false)
            client.apiKey = made.secretKey
            func victim() throws -> [UInt8]? {
                try server.project.store.read { try $0.get(Tables.users, UserKey("beta", "victim"))?.encoded() }
            }
            let before = try victim()
            var called = 0
            for method in server.instance.router.registry.all.map(\.descriptor)
            where !method.requestStreaming && !method.responseStreaming && method.tenant == .request {
                for tenantID in ["acme", "beta", ""] as [Text] {
                    // In most requests about a user the second field is the uid; in others it is an email.
                    for name in ["victim", "victim@secret.example"] as [Text] {
                        let request = UsersGetRequest(tenantID: tenantID, uid: name)
                        let answer: AnyMessage? = try? client.call(method.fullName, request)
                        let bytes = answer?.bytes ?? []
                        #expect(!bytes.contains([UInt8]("Untold".utf8)), "\(method.fullName) told")
                        called += 1
                    }
                }
            }
            #expect(called > 300 && before != nil)
            #expect(try victim() == before)
        }
    }
}
