import Base
import Crypto
import Identity
import JSON
import Messages
import Service
import Store
import TestSupport
import Testing
import Wire

/// Service accounts and their keys, as a project admin manages them.
@Suite struct ServiceAccountTests {
    func create(_ client: RawClient, _ request: ProjectCreateServiceAccountRequest) throws -> ServiceAccount {
        let made: ProjectCreateServiceAccountResponse = try client.call(
            "postern.v1.Project/CreateServiceAccount", request)
        return made.serviceAccount ?? ServiceAccount()
    }

    func list(_ client: RawClient, size: Int32 = 0) throws -> [Text] {
        var ids: [Text] = []
        var token = Text.empty
        repeat {
            let page: ProjectListServiceAccountsResponse = try client.call(
                "postern.v1.Project/ListServiceAccounts",
                ProjectListServiceAccountsRequest(pageSize: size, pageToken: token))
            ids += page.serviceAccounts.map(\.serviceAccountID)
            token = page.nextPageToken
        } while !token.isEmpty
        return ids
    }

    func keys(_ client: RawClient, _ id: Text = "backend") throws -> [ServiceAccountKey] {
        let listed: ProjectListServiceAccountKeysResponse = try client.call(
            "postern.v1.Project/ListServiceAccountKeys", ProjectListServiceAccountKeysRequest(serviceAccountID: id))
        return listed.keys
    }

    func upload(_ client: RawClient, _ key: [UInt8], _ id: Text = "backend") throws -> ServiceAccountKey {
        let made: ProjectUploadServiceAccountKeyResponse = try client.call(
            "postern.v1.Project/UploadServiceAccountKey",
            ProjectUploadServiceAccountKeyRequest(serviceAccountID: id, publicKey: key))
        return made.key ?? ServiceAccountKey()
    }

    private let all = Scope(tenants: .all(true))

    // MARK: Accounts

    @Test func anAccountIsMadeReadListedChangedAndDeletedForEver() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, role: .app)
            let client = backEnd.client
            #expect(backEnd.account.email == "backend@test.postern.local" && !backEnd.account.builtIn)
            let unnamed = try create(client, ProjectCreateServiceAccountRequest(role: .verifier, scope: all))
            #expect(unnamed.serviceAccountID.byteCount == 20)
            #expect(Set(try list(client, size: 1)) == ["backend", "postern", unnamed.serviceAccountID])
            try backEnd.update(["display_name", "role", "disabled", "trusted_end_user_ip"]) {
                $0.displayName = "Shop"
                $0.role = .tenantAdmin
                $0.disabled = true
                $0.trustedEndUserIP = true
            }
            let got: ProjectGetServiceAccountResponse = try client.call(
                "postern.v1.Project/GetServiceAccount", ProjectGetServiceAccountRequest(serviceAccountID: "backend"))
            var expected = backEnd.account
            expected.displayName = "Shop"
            expected.role = .tenantAdmin
            expected.disabled = true
            expected.trustedEndUserIP = true
            #expect(got.serviceAccount == expected)
            try backEnd.delete()
            #expect(!(try list(client).contains("backend")))
            expectRefusal("SERVICE_ACCOUNT_NOT_FOUND") { try backEnd.delete() }
            expectRefusal("SERVICE_ACCOUNT_NOT_FOUND") { _ = try keys(client) }
            let again = ProjectCreateServiceAccountRequest(serviceAccountID: "backend", role: .app, scope: all)
            expectRefusal("SERVICE_ACCOUNT_ID_EXISTS") { _ = try create(client, again) }
            #expect(try server.project.store.read { try $0.count(Tables.serviceAccountKeys) } == 0)
        }
    }

    @Test func whatAnAccountMayNotBeIsRefused() async throws {
        try await withServer { server in
            let client = try server.connect()
            let none = Scope(tenants: .tenantID("nowhere"))
            let long = Text(String(repeating: "x", count: 257))
            let rows: [(ProjectCreateServiceAccountRequest, String)] = [
                (.init(serviceAccountID: "abc", scope: all), "INVALID_SERVICE_ACCOUNT_ID"),
                (.init(serviceAccountID: "a@b.c", scope: all), "INVALID_SERVICE_ACCOUNT_ID"),
                (.init(serviceAccountID: "Upper", scope: all), "INVALID_SERVICE_ACCOUNT_ID"),
                (
                    .init(serviceAccountID: Text(String(repeating: "a", count: 65)), scope: all),
                    "INVALID_SERVICE_ACCOUNT_ID"
                ),
                (.init(serviceAccountID: "good", role: .any, scope: all), "INVALID_ROLE"),
                (.init(serviceAccountID: "good"), "INVALID_SCOPE"),
                (.init(serviceAccountID: "good", scope: Scope(tenants: .all(false))), "INVALID_SCOPE"),
                (
                    .init(serviceAccountID: "good", role: .projectAdmin, scope: Scope(tenants: .tenantID(""))),
                    "INVALID_SCOPE"
                ),
                (.init(serviceAccountID: "good", displayName: long, scope: all), "INVALID_DISPLAY_NAME"),
                (.init(serviceAccountID: "good", scope: none), "TENANT_NOT_FOUND"),
                (.init(serviceAccountID: "postern", scope: all), "SERVICE_ACCOUNT_ID_EXISTS"),
            ]
            for (request, reason) in rows { expectRefusal(reason) { _ = try create(client, request) } }
            _ = try create(client, .init(serviceAccountID: "good", scope: all, validateOnly: true))
            #expect(try list(client) == ["postern"])
        }
    }

    @Test func whatAnUpdateMayNotMakeOfItIsRefused() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server, role: .app, scope: Scope(tenants: .tenantID("")))
            let rows: [([Text], (inout ProjectUpdateServiceAccountRequest) -> Void, String)] = [
                ([], { _ in }, "INVALID_UPDATE_MASK"), (["email"], { _ in }, "INVALID_UPDATE_MASK"),
                (["built_in"], { _ in }, "INVALID_UPDATE_MASK"), (["role"], { $0.role = .any }, "INVALID_ROLE"),
                (["role"], { $0.role = .projectAdmin }, "INVALID_SCOPE"), (["scope"], { _ in }, "INVALID_SCOPE"),
                (["scope"], { $0.scope = Scope(tenants: .tenantID("nowhere")) }, "TENANT_NOT_FOUND"),
                (["role"], { $0.serviceAccountID = "nobody" }, "SERVICE_ACCOUNT_NOT_FOUND"),
                (["role"], { $0.serviceAccountID = "" }, "SERVICE_ACCOUNT_NOT_FOUND"),
            ]
            for (paths, change, reason) in rows {
                expectRefusal(reason, "\(paths)") { try backEnd.update(paths, change) }
            }
            try backEnd.update(["disabled"]) {
                $0.disabled = true
                $0.validateOnly = true
            }
            _ = try backEnd.signIn(backEnd.token())
        }
    }

    @Test func everyChangeIsInTheEventLog() async throws {
        try await withServer { server in
            let backEnd = try BackEnd(server)
            try backEnd.update(["role"]) { $0.role = .app }
            try backEnd.revokeKey()
            try backEnd.delete()
            let events = try server.project.store.read { transaction in
                var events: [String] = []
                try transaction.scanEvents(tenant: .empty) { stored in
                    let event = try EventRecord(decoding: stored.payload)
                    if "\(event.kind)".hasPrefix("serviceAccount") { events.append("\(event.kind) \(event.detail)") }
                    return true
                }
                return events
            }
            #expect(
                events == [
                    "serviceAccountCreated postern:scope=all tenants,display_name,custom_tokens=true",
                    "serviceAccountCreated backend:scope=all tenants,custom_tokens=true",
                    "serviceAccountKeyCreated backend/\(backEnd.keyID)", "serviceAccountUpdated backend:role=app",
                    "serviceAccountKeyRevoked backend/\(backEnd.keyID)", "serviceAccountDeleted backend",
                ])
        }
    }
}
