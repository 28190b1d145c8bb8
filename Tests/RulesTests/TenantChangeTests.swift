import Base
import Messages
import Testing

@testable import Rules

@Suite struct TenantChangeTests {
    private func apply(_ paths: [Text], _ configure: (inout Messages.Tenant) -> Void) throws -> Messages.Tenant {
        var wanted = Messages.Tenant()
        configure(&wanted)
        var tenant = Self.before
        #expect(
            try TenantChange(wanted, paths: paths, isProjectAdmin: true).apply(to: &tenant, limits: Limits())
                == Text(paths.map(\.string).joined(separator: ",")))
        return tenant
    }

    private static let before: Messages.Tenant = {
        var tenant = TenantSettings.defaults(tenantID: "acme", now: Timestamp(seconds: 1))
        tenant.displayName = "before"
        tenant.guidance = Guidance(locale: "en", message: "m", helpURL: "https://h")
        tenant.client = ClientConfig(
            permissions: ClientPermissions(disabledUserSignup: true, disabledUserDeletion: false))
        return tenant
    }()

    /// Every path, and how its wanted value is set.
    private static let fields: [(path: Text, set: @Sendable (inout Messages.Tenant) -> Void)] = [
        ("display_name", { $0.displayName = "after" }), ("disable_auth", { $0.disableAuth = true }),
        ("allow_password_signup", { $0.allowPasswordSignup = false }),
        ("enable_anonymous_user", { $0.enableAnonymousUser = true }),
        ("enable_email_privacy", { $0.enableEmailPrivacy = false }), ("refresh_mode", { $0.refreshMode = .reuse }),
        (
            "client.permissions.disabled_user_signup",
            { tenant in
                var permissions = tenant.client?.permissions ?? ClientPermissions()
                permissions.disabledUserSignup = false
                tenant.client = ClientConfig(permissions: permissions)
            }
        ),
        (
            "client.permissions.disabled_user_deletion",
            { tenant in
                var permissions = tenant.client?.permissions ?? ClientPermissions()
                permissions.disabledUserDeletion = true
                tenant.client = ClientConfig(permissions: permissions)
            }
        ),
        ("session_idle_seconds", { $0.sessionIdleSeconds = 600 }),
        ("session_absolute_seconds", { $0.sessionAbsoluteSeconds = 601 }),
        ("recent_login_seconds", { $0.recentLoginSeconds = 60 }),
        ("guidance", { $0.guidance = Guidance(locale: "de", message: "n", helpURL: "") }),
        ("anonymous_user_expiry_seconds", { $0.anonymousUserExpirySeconds = 86_400 }),
        ("event_retention_seconds", { $0.eventRetentionSeconds = 86_400 }),
        ("suspended", { $0.suspended = true }), ("suspension_reason", { $0.suspensionReason = "unpaid" }),
    ]

    @Test(arguments: fields.indices) func eachPathChangesItsOwnSettingOnly(index: Int) throws {
        let (path, set) = Self.fields[index]
        let after = try apply([path]) { wanted in
            // All other settings have wanted values, too, but are not named.
            for (_, setOther) in Self.fields { setOther(&wanted) }
        }
        var expected = Self.before
        set(&expected)
        #expect(after == expected)
        #expect(after != Self.before)
    }

    @Test func allPathsTogetherChangeAll() throws {
        let after = try apply(Self.fields.map(\.path)) { wanted in for (_, set) in Self.fields { set(&wanted) } }
        var expected = Self.before
        for (_, set) in Self.fields { set(&expected) }
        #expect(after == expected)
    }

    @Test func noPathChangesNothing() throws {
        #expect(try apply([]) { $0.displayName = "x" } == Self.before)
    }

    @Test func aNamedFieldThatIsMissingIsSetToItsDefault() throws {
        let after = try apply(["client.permissions.disabled_user_signup", "guidance", "display_name"]) { _ in }
        #expect(after.client?.permissions?.disabledUserSignup == false)
        #expect(after.guidance == nil && after.displayName.isEmpty)
    }

    @Test(arguments: [
        "", "*", "tenant_id", "synthetic", "revision", "created_at_micros", "updated_at_micros", "client",
        "client.permissions", "client.permissions.", "disabled_user_signup", "guidance.message", "Display_Name",
        " display_name", "display_name ", "display_name,disable_auth", "unknown", "sessionIdleSeconds",
    ])
    func noOtherPathIsASetting(path: String) {
        let failure = failure { _ = try apply([Text(path)]) { _ in } }
        #expect(failure?.reason == "INVALID_UPDATE_MASK" && failure?.violations.first?.field == "update_mask")
    }

    @Test func costlyHashesAreForAProjectAdminToAllow() throws {
        let wanted = Messages.Tenant(allowCostlyHashes: true)
        let refused = failure { _ = try TenantChange(wanted, paths: ["display_name", "allow_costly_hashes"]) }
        #expect(refused?.reason == "INSUFFICIENT_PERMISSION" && refused?.metadata.first?.value == "project-admin")
        var tenant = Self.before
        _ = try TenantChange(wanted, paths: ["allow_costly_hashes"], isProjectAdmin: true)
            .apply(to: &tenant, limits: Limits())
        #expect(tenant.allowCostlyHashes)
    }

    @Test func `How long events are kept is for a project-admin to set, within bounds`() throws {
        let day = Messages.Tenant(eventRetentionSeconds: 86_400)
        let refused = failure { _ = try TenantChange(day, paths: ["event_retention_seconds"]) }
        #expect(refused?.reason == "INSUFFICIENT_PERMISSION")
        for (seconds, reason) in [
            (0, nil), (86_400, nil), (315_360_000, nil), (86_399, "INVALID_DURATION"),
            (315_360_001, "INVALID_DURATION"), (-1, "INVALID_DURATION"), (.max, "INVALID_DURATION"),
        ] as [(Int64, String?)] {
            var tenant = Self.before
            let wanted = Messages.Tenant(eventRetentionSeconds: seconds)
            let found = failure {
                _ = try TenantChange(wanted, paths: ["event_retention_seconds"], isProjectAdmin: true)
                    .apply(to: &tenant, limits: Limits())
            }
            #expect(found?.reason == reason, "\(seconds)")
        }
    }

    @Test func `The table of settings marks those that are not ordinary`() {
        func names(_ isMeant: (SettingRule) -> Bool) -> Set<Text> {
            Set(Messages.Tenant.Path.allCases.filter { isMeant($0.rule) }.map(\.name))
        }
        let partsOfQuotas: Set<Text> = [
            "quotas.stored_bytes", "quotas.mutations_per_second", "quotas.anonymous_sign_ups_per_hour",
            "quotas.sms_per_hour",
        ]
        let ofProjectAdmins: Set<Text> = [
            "allow_costly_hashes", "event_retention_seconds", "suspended", "suspension_reason", "quotas",
        ]
        #expect(names { $0.changer == .projectAdmin } == ofProjectAdmins.union(partsOfQuotas))
        #expect(
            names { $0.template == .own } == [
                "display_name", "disable_auth", "suspended", "suspension_reason", "test_phone_numbers",
            ])
        #expect(names { $0.template == .copiedAsPart } == partsOfQuotas)
        #expect(
            names { $0.length == .long } == [
                "display_name", "password_policy", "guidance", "allowed_continue_domains", "allowed_sms_regions",
                "blocked_sms_regions", "test_phone_numbers",
            ])
    }

    @Test func aPathThatIsNamedTwiceIsRefused() {
        let change = {
            _ = try TenantChange(Messages.Tenant(), paths: ["disable_auth", "display_name", "disable_auth"])
        }
        #expect(reason(change) == "INVALID_UPDATE_MASK")
    }

    @Test(
        arguments: [
            ("session_idle_seconds", 300, 31_536_000), ("session_absolute_seconds", 300, 157_680_000),
            ("recent_login_seconds", 30, 86_400),
        ] as [(Text, Int64, Int64)])
    func durationsHaveTheirLimits(path: Text, least: Int64, most: Int64) {
        func reason(_ value: Int64) -> String? {
            RulesTests.reason {
                _ = try apply([path]) { wanted in
                    wanted.sessionIdleSeconds = value
                    wanted.sessionAbsoluteSeconds = value
                    wanted.recentLoginSeconds = value
                }
            }
        }
        #expect(reason(least) == nil && reason(most) == nil)
        for wrong in [least - 1, most + 1, 0, -1, .min, .max] { #expect(reason(wrong) == "INVALID_DURATION") }
    }

    @Test func aRefreshModeMustBeNamed() {
        #expect(reason { _ = try apply(["refresh_mode"]) { $0.refreshMode = .unspecified } } == "INVALID_REFRESH_MODE")
    }

    @Test func displayNamesAreCheckedAsEverywhere() {
        #expect(reason { _ = try apply(["display_name"]) { $0.displayName = "a\u{202E}b" } } == "INVALID_DISPLAY_NAME")
    }

    @Test func guidanceIsBoundedAndItsLinkSafe() {
        func reason(_ guidance: Guidance) -> String? {
            RulesTests.reason { _ = try apply(["guidance"]) { $0.guidance = guidance } }
        }
        func text(_ count: Int) -> Text { Text(String(repeating: "x", count: count)) }
        let link = Text("https://x/" + String(repeating: "x", count: 2_038))
        #expect(reason(Guidance(locale: text(35), message: text(512), helpURL: link)) == nil)
        #expect(reason(Guidance(locale: text(36), message: "", helpURL: "")) == "INVALID_GUIDANCE")
        #expect(reason(Guidance(locale: "", message: text(513), helpURL: "")) == "INVALID_GUIDANCE")
        #expect(reason(Guidance(locale: "", message: "", helpURL: Text(link.string + "x"))) == "INVALID_GUIDANCE")
        for wrong: Text in ["http://a", "javascript:alert(1)", "a", "HTTPS://a"] {
            #expect(reason(Guidance(locale: "", message: "", helpURL: wrong)) == "INVALID_GUIDANCE", "\(wrong)")
        }
    }
}
