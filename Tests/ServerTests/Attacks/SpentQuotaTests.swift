import Base
import Messages
import Service
import TestSupport
import Testing

/// A quota of changes a second, which a test spends. Project-admins have none.
enum SpentQuota: String, CaseIterable, Sendable {
    case callerMutations = "caller_mutations"
    case tenantMutations = "tenant_mutations"

    /// The mutations that the quota counts: a tenant's quota counts no changes by admins.
    var mutations: [PublishedMethod] {
        PublishedMethod.all.filter { method in
            guard method.isMutation else { return false }
            return method.role == Int(Role.app.rawValue)
                || self == .callerMutations && method.role == Int(Role.tenantAdmin.rawValue)
        }
    }
}

/// A method that may go beyond a quota.
struct BeyondQuota: Sendable, CustomTestStringConvertible {
    let quota: SpentQuota
    let method: PublishedMethod

    var testDescription: String { "\(method.fullName) beyond \(quota.rawValue)" }

    static let all = SpentQuota.allCases.flatMap { quota in
        quota.mutations.filter(\.isAllowedBeyondQuota).map { BeyondQuota(quota: quota, method: $0) }
    }
}

/// Every mutation, called when the caller or the tenant has no change left: those that are `allowed_beyond_quota` work,
/// and all others are refused.
@Suite(.serialized) struct SpentQuotaTests {
    /// A server where `quota` is four changes. The clock stands still, so nothing is refilled.
    private static func withQuota(_ quota: SpentQuota, _ body: (TestServer) async throws -> Void) async throws {
        try await withServer(configure: { configuration in
            guard quota == .callerMutations else { return }
            configuration.limits.mutationsPerCallerPerSecond = 1
            configuration.limits.mutationsPerAdminPerSecond = 1
        }) { server in
            try server.updateTenant("", ["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            if quota == .tenantMutations {
                try server.updateTenant("", ["quotas.mutations_per_second"]) {
                    $0.quotas = TenantQuotas(mutationsPerSecond: 1)
                }
            }
            try await body(server)
        }
    }

    /// Makes changes until the quota refuses one.
    private static func spend(_ quota: SpentQuota, _ client: RawClient, mailsTo name: String = "app") {
        func grow(_ number: Int) -> Failure {
            failure {
                let _: AccountsSendOobCodeResponse = try client.call(
                    "postern.v1.Accounts/SendOobCode",
                    AccountsSendOobCodeRequest(requestType: .emailSignin, email: Text("\(name)-\(number)@example.com")))
            }
        }
        var (count, refused) = (0, grow(0))
        while refused.reason.isEmpty, count < 100 {
            count += 1
            refused = grow(count)
        }
        #expect(count == 4 && refused.reason == "QUOTA_EXCEEDED" && refused.metadata("quota") == quota.rawValue)
    }

    private static func role(for method: PublishedMethod) -> Role {
        method.role == Int(Role.app.rawValue) ? .app : .tenantAdmin
    }

    // MARK: Allowed

    @Test(arguments: BeyondQuota.all) func `What ends or restricts something works`(_ call: BeyondQuota) async throws {
        try await Self.withQuota(call.quota) { server in
            let scene = try await DryRunScene(server)
            let name = call.method.fullName.replacing("postern.v1.", with: "")
            let made = try Self.request(name, scene) ?? scene.request(name, validateOnly: false)
            let request = try #require(made, "\(name): write a request that ends something")
            let client = try server.client(as: Self.role(for: call.method), of: nil)
            Self.spend(call.quota, client)
            let before = try scene.tables()
            let refused = failure { let _: AnyMessage = try client.call(call.method.fullName, request) }
            #expect(refused.reason.isEmpty, "\(name): \(refused.reason) \(refused.message)")
            let changed = try scene.tablesChanged(since: before)
            #expect(!changed.isEmpty)
        }
    }

    /// The request of a method for which `DryRunScene` has none, or none that may go beyond a quota.
    private static func request(_ name: String, _ scene: DryRunScene) throws -> (any Message)? {
        switch name {
        case "Sessions/SignOut": return SessionsSignOutRequest(idToken: scene.idToken)
        case "Sessions/Revoke":
            return SessionsRevokeRequest(idToken: scene.idToken, target: .sessionID(scene.sessionID))
        case "Accounts/Unlink": return AccountsUnlinkRequest(idToken: scene.idToken, providerID: "google.com")
        case "Accounts/ApplyOobCode":
            return AccountsApplyOobCodeRequest(oobCode: try verificationCode(of: "bob@example.com", scene))
        case "Accounts/ResetPassword":
            let link: UsersGenerateOobLinkResponse = try scene.client.call(
                "postern.v1.Users/GenerateOobLink",
                UsersGenerateOobLinkRequest(requestType: .passwordReset, email: DryRunScene.email))
            return AccountsResetPasswordRequest(oobCode: link.oobCode, newPassword: Secret("battery staple"))
        case "Accounts/WithdrawMfaEnrollment":
            let client = try IdentityClient(scene.server)
            try client.setFactors(.enabled)
            let user = try client.appUser("eve@example.com")
            return AccountsWithdrawMfaEnrollmentRequest(idToken: user.tokens.idToken, factorID: user.factorID)
        case "Providers/Update":
            let mask = ProtobufFieldMask(paths: ["enabled"])
            let _: ProvidersUpdateResponse = try scene.client.call(
                "postern.v1.Providers/Update",
                ProvidersUpdateRequest(provider: Provider(providerID: "oidc.corp", enabled: true), updateMask: mask))
            return ProvidersUpdateRequest(provider: Provider(providerID: "oidc.corp"), updateMask: mask)
        case "Users/Update":
            return UsersUpdateRequest(
                uid: DryRunScene.uid, updateMask: ProtobufFieldMask(paths: ["disabled"]), disabled: true)
        default: return nil
        }
    }

    private static func verificationCode(of email: Text, _ scene: DryRunScene) throws -> Secret {
        let _: UsersCreateResponse = try scene.client.call(
            "postern.v1.Users/Create",
            UsersCreateRequest(uid: "bob", email: email, password: Secret("correct horse")))
        let link: UsersGenerateOobLinkResponse = try scene.client.call(
            "postern.v1.Users/GenerateOobLink", UsersGenerateOobLinkRequest(requestType: .verifyEmail, email: email))
        return link.oobCode
    }

    // MARK: Refused

    @Test(arguments: SpentQuota.allCases) func `Every other change is refused`(_ quota: SpentQuota) async throws {
        try await Self.withQuota(quota) { server in
            let app = try server.client(as: .app, of: nil)
            let admin = try server.client(as: .tenantAdmin, of: nil)
            Self.spend(quota, app)
            if quota == .callerMutations { Self.spend(quota, admin, mailsTo: "admin") }
            let streaming = try server.connect(authenticated: false)
            streaming.apiKey = admin.apiKey
            let others = quota.mutations.filter { !$0.isAllowedBeyondQuota }
            #expect(others.count >= 10 && quota.mutations.count > others.count)
            for method in others {
                let client = Self.role(for: method) == .app ? app : admin
                let refused = failure {
                    if method.isRequestStreaming {
                        let first = UsersImportRequest(onConflict: .fail, users: [ImportUser(uid: "bob")])
                        _ = try ImportTests.Stream(streaming, first).answer()
                    } else {
                        // The request says nothing: a quota refuses a call before its handler looks at the request.
                        let _: AnyMessage = try client.call(method.fullName, TenantsGetRequest())
                    }
                }
                #expect(refused.reason == "QUOTA_EXCEEDED", "\(method.fullName): \(refused.reason)")
                #expect(refused.metadata("quota") == quota.rawValue, "\(method.fullName)")
            }
        }
    }

    /// The exceptions that proto/postern/v1/options.proto names.
    @Test func `A request that ends nothing is refused, though its method may end something`() async throws {
        try await Self.withQuota(.callerMutations) { server in
            let scene = try await DryRunScene(server)
            let admin = try server.client(as: .tenantAdmin, of: nil)
            Self.spend(.callerMutations, admin)
            func mask(_ path: Text) -> ProtobufFieldMask { ProtobufFieldMask(paths: [path]) }
            let link = ProviderInfo(providerID: "oidc.corp", rawID: "4711")
            let requests: [(String, any Message)] = [
                (
                    "Users/Update",
                    UsersUpdateRequest(uid: DryRunScene.uid, updateMask: mask("display_name"), displayName: "Ada")
                ),
                (
                    "Users/Update",
                    UsersUpdateRequest(uid: DryRunScene.uid, updateMask: mask("link_providers"), linkProviders: [link])
                ),
                ("Users/UpdateMany", UsersUpdateManyRequest(allUsers: true, updateMask: mask("disabled"))),
                (
                    "Providers/Update",
                    ProvidersUpdateRequest(
                        provider: Provider(providerID: "oidc.corp", displayName: "Corp"),
                        updateMask: mask("display_name"))
                ),
                (
                    "Tenants/Update",
                    TenantsUpdateRequest(
                        tenantID: "acme", tenant: Messages.Tenant(displayName: "Acme"),
                        updateMask: mask("display_name"))
                ),
            ]
            for (name, request) in requests {
                expectRefusal("QUOTA_EXCEEDED", "\(name)") {
                    let _: AnyMessage = try admin.call("postern.v1.\(name)", request)
                }
            }
            let found: UsersGetResponse = try scene.client.call(
                "postern.v1.Users/Get", UsersGetRequest(uid: DryRunScene.uid))
            #expect(found.user?.displayName == "" && found.user?.disabled == false)
        }
    }

    /// A project-admin sets the quotas, and is bound by none of these.
    @Test func `No change of a project-admin is refused by these quotas`() async throws {
        try await Self.withQuota(.callerMutations) { server in
            let admin = try server.connect()
            for number in 0..<20 {
                let _: UsersCreateResponse = try admin.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: Text("user-\(number)")))
            }
        }
    }
}
