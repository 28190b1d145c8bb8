import Base
import Messages
import TestSupport
import Testing

@testable import Rules

@Suite struct SelfServiceTests {
    private func settings(signUp: Bool, deletion: Bool) -> TenantSettings {
        tenantSettings { tenant in
            tenant.client = ClientConfig(
                permissions: ClientPermissions(disabledUserSignup: signUp, disabledUserDeletion: deletion))
        }
    }

    @Test func eachToggleRefusesItsOwnAndNothingElse() {
        for signUp in [false, true] {
            for deletion in [false, true] {
                let settings = settings(signUp: signUp, deletion: deletion)
                #expect(SelfService.refusalOfSignUp(settings) == (signUp ? .disabledUserSignup : nil))
                #expect(SelfService.refusalOfDeletion(settings) == (deletion ? .disabledUserDeletion : nil))
            }
        }
    }

    @Test func aTenantWithoutClientSettingsRefusesNothing() {
        let settings = tenantSettings { $0.client = nil }
        #expect(SelfService.refusalOfSignUp(settings) == nil && SelfService.refusalOfDeletion(settings) == nil)
    }

    @Test(arguments: [Toggle.disabledUserSignup, .disabledUserDeletion])
    func theRefusalTellsEveryClientWhatItNeeds(toggle: Toggle) {
        let settings = tenantSettings { tenant in
            tenant.guidance = Guidance(locale: "de", message: "Frag Ada.", helpURL: "https://help.test")
        }
        let failure = Failure.adminRestricted(toggle: toggle, operation: "SignUp", settings: settings, decisionID: "d1")
        #expect(failure.code == .permissionDenied && failure.reason == "ADMIN_RESTRICTED_OPERATION")
        #expect(
            failure.metadata == [
                .init("tenant", "acme"), .init("toggle", toggle.settingName), .init("operation", "SignUp"),
                .init("web_code", "auth/admin-restricted-operation"),
                .init("mobile_code", "ERROR_ADMIN_RESTRICTED_OPERATION"), .init("required_role", "tenant-admin"),
                .init("decision_id", "d1"),
            ])
        #expect(failure.guidance == .init(locale: "de", message: "Frag Ada.", url: "https://help.test"))
        #expect(failure.message.contains("d1"))
        #expect(failure.message.contains(toggle == .disabledUserSignup ? "sign up" : "delete"))
    }

    @Test func togglesAreNamedAsInTheUpdateMask() throws {
        #expect(Toggle.unspecified.settingName == "")
        for toggle in Toggle.allCases where toggle != .unspecified {
            var tenant = Messages.Tenant()
            let path = Text(toggle.settingName)
            #expect(try TenantChange(Messages.Tenant(), paths: [path]).apply(to: &tenant, limits: Limits()) == path)
        }
    }
}
