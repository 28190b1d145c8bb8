public import Base
public import Messages

/// The self-service toggles: the one place that decides whether end users may create or delete their accounts.
///
/// Every method of `Accounts` asks here, at the place that its comment in proto/ gives; methods of `Users` never ask.
public enum SelfService {
    /// The toggle that refuses creating an end user's account, if it is set.
    public static func refusalOfSignUp(_ settings: TenantSettings) -> Toggle? {
        settings.permissions.disabledUserSignup ? .disabledUserSignup : nil
    }

    /// The toggle that refuses deleting an end user's account, if it is set.
    public static func refusalOfDeletion(_ settings: TenantSettings) -> Toggle? {
        settings.permissions.disabledUserDeletion ? .disabledUserDeletion : nil
    }

    /// Throws where end users may not create their accounts.
    public static func checkSignUp(_ settings: TenantSettings) throws(SelfServiceRefusal) {
        if let toggle = refusalOfSignUp(settings) { throw SelfServiceRefusal(toggle: toggle) }
    }

    /// Throws where end users may not delete their accounts.
    public static func checkDeletion(_ settings: TenantSettings) throws(SelfServiceRefusal) {
        if let toggle = refusalOfDeletion(settings) { throw SelfServiceRefusal(toggle: toggle) }
    }
}

/// Thrown inside of a transaction when a self-service toggle refuses what was decided there.
public struct SelfServiceRefusal: Error {
    public let toggle: Toggle

    public init(toggle: Toggle) { self.toggle = toggle }
}

extension Toggle {
    /// The setting's name in `Tenant`, as metadata and the CLI write it.
    public var settingName: String {
        switch self {
        case .unspecified: ""
        case .disabledUserSignup: "client.permissions.disabled_user_signup"
        case .disabledUserDeletion: "client.permissions.disabled_user_deletion"
        }
    }
}

extension Failure {
    /// ADMIN_RESTRICTED_OPERATION with all that a client needs: which switch refused, who can change it, what to quote.
    public static func adminRestricted(
        toggle: Toggle, operation: String, settings: TenantSettings, decisionID: Text
    ) -> Failure {
        let what = toggle == .disabledUserDeletion ? "delete their own accounts" : "sign up by themselves"
        return Failure(
            .adminRestrictedOperation,
            "End users of this tenant may not \(what); ask an administrator to do it, quoting \(decisionID).",
            metadata: [
                Entry("tenant", settings.tenantID.string),
                Entry("toggle", toggle.settingName),
                Entry("operation", operation),
                Entry("web_code", "auth/admin-restricted-operation"),
                Entry("mobile_code", "ERROR_ADMIN_RESTRICTED_OPERATION"),
                .requiredRole(.tenantAdmin),
                Entry("decision_id", decisionID.string),
            ],
            guidance: settings.guidance)
    }
}
