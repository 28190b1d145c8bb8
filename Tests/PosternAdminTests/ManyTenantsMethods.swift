import Base
import Messages
import PosternAdmin
import Testing

/// The methods that handle several tenants at once.
enum ManyTenantsMethods {
    static func call(_ project: ProjectAdmin, _ recorder: MethodRecorder) async throws {
        let made = try await project.createTenant(
            "shop-1", settings: TenantSettingsChange { $0.recentLogin = .seconds(77) }, template: "acme")
        #expect(made.recentLoginSeconds == 77 && made.enableEmailLinkSignin && made.displayName.isEmpty)
        let filter = TenantFilter(tenantIDPrefix: "shop-")
        #expect(try await project.listTenants(where: filter).all() == [made])
        let results = try await recorder.expect("Tenants/UpdateMany") {
            try await project.updateTenants(where: filter, TenantSettingsChange { $0.enableAnonymousUser = true })
        }
        #expect(results.map(\.tenantID) == ["shop-1"] && results.first?.change?.paths == ["enable_anonymous_user"])
        let copied = try await recorder.expect("Tenants/CopySettings") {
            try await project.copySettings(from: "acme", to: "shop-1", paths: ["enable_anonymous_user"])
        }
        #expect(!copied.enableAnonymousUser && copied.recentLoginSeconds == 77)
        let acme = project.tenant("acme")
        let (count, rejections) = try await recorder.expect("Users/UpdateMany") {
            try await acme.updateUsers(where: UserConditions(emailPrefix: "ada@"), claimsPatch: #"{"plan":"pro"}"#)
        }
        #expect(count == 1 && rejections.isEmpty)
        #expect(try await acme.getUser("ada").customClaimsJSON.contains([UInt8](#""plan":"pro""#.utf8)))
        let hooks = try await recorder.expect("HookConfigs/Update") {
            try await acme.updateHookConfig(
                HookConfigChange {
                    $0.beforeSignIn = Hook(
                        webhook: WebhookConfig(
                            url: "https://acme.example/hook", signingSecret: Secret([UInt8](repeating: 7, count: 32))))
                })
        }
        #expect(hooks.beforeSignIn?.webhook?.hasSigningSecret == true && hooks.beforeCreate == nil)
        let present = try await recorder.expect("HookConfigs/Get") { try await acme.hookConfig() }
        #expect(present == hooks)
        let denials = try await recorder.expect("Tenants/ListAllDenials") {
            try await project.listAllDenials(email: "eve@example.com").all()
        }
        #expect(denials.map(\.tenantID) == ["acme"])
        #expect(try await project.tenant("acme").listDenials(email: "eve@example.com").all().count == 1)
        #expect(try await project.tenant("acme").listDenials(email: "bob@example.com").all().isEmpty)
    }
}
