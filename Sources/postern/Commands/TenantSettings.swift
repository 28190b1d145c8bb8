import Base
import Messages

/// The settings that a command line names, and the field mask that lists them.
struct TenantSettings {
    var tenant = Tenant()
    var paths: [Text] = []
    private var guidanceMessage: Text?
    private var guidanceURL: Text?
    private var guidanceLocale: Text?

    private static let passwordRules = "min=8, lowercase, uppercase, digit, symbol, force; none lifts it"

    static let flags = [
        Flag("display-name", "TEXT", "the name that people see"),
        Flag("allow-password-signup", "true|false", "email and password: sign-up and sign-in"),
        Flag("enable-anonymous-user", "true|false", "sign-up without an email"),
        Flag("enable-email-link-signin", "true|false", "sign-in with a link in a mail"),
        Flag("enable-phone-signin", "true|false", "sign-in with a code sent to a phone number"),
        Flag("allowed-sms-regions", "REGION,…", "whose numbers are sent codes, as DE,US; none: all but the blocked"),
        Flag("blocked-sms-regions", "REGION,…", "whose numbers are sent nothing; none lifts it"),
        Flag("test-phone-numbers", "NUMBER=CODE,…", "are sent nothing and have that code; none removes them"),
        Flag("second-factors", "disabled|enabled|mandatory", "whether users may have second factors, or must"),
        Flag("allowed-second-factors", "KIND,…", "phone, totp: which they may add; none: all of them"),
        Flag("password-policy", "RULE,…", passwordRules),
        Flag("disabled-user-signup", "true|false", "nobody signs up by themselves"),
        Flag("disabled-user-deletion", "true|false", "nobody deletes their own account"),
        Flag("enable-email-privacy", "true|false", "do not tell which emails exist"),
        Flag("allow-international-email", "true|false", "emails beyond ASCII"),
        Flag("allow-costly-hashes", "true|false", "imports may bring hashes that cost much to check (project-admin)"),
        Flag("disable-auth", "true|false", "refuse all about users; project-admins can still manage them"),
        Flag("refresh-mode", "rotate|reuse", "whether each refresh hands out a new refresh token"),
        Flag("session-idle", "DURATION", "a refresh token unused for so long is expired"),
        Flag("session-absolute", "DURATION", "a session older than this is expired"),
        Flag("recent-login", "DURATION", "how old a login may be for a sensitive change"),
        Flag(
            "allowed-continue-domains", "HOST,…", "where continue URLs may lead; none: to the action page's host only"),
        Flag("allow-loopback-continue-url", "true|false", "they may lead to this machine, for trying things out"),
        Flag("guidance-message", "TEXT", "what end users are told when a toggle refuses them"),
        Flag("guidance-url", "URL", "a page where end users can read more"),
        Flag("guidance-locale", "TAG", "the message's language, for example en"),
        Flag("anonymous-user-expiry", "DURATION", "deletes anonymous users unused for so long; 0s: never"),
        Flag("event-retention", "DURATION", "deletes older events; 0s: never (project-admin)"),
        Flag("suspended", "true|false", "refuse everything, its admins too (project-admin)"),
        Flag("suspension-reason", "TEXT", "the reason that its admins are told (project-admin)"),
        Flag("quota-stored-bytes", "COUNT", "what its rows may take; 0: the default (project-admin)"),
        Flag("quota-mutations-per-second", "COUNT", "changes by its end users; 0: the default (project-admin)"),
        Flag("quota-anonymous-sign-ups", "COUNT", "an hour; 0: the default (project-admin)"),
        Flag("quota-sms", "COUNT", "codes sent by SMS an hour; 0: the default (project-admin)"),
    ]

    init(_ arguments: Arguments) throws(CommandError) {
        note("display_name", arguments.text("display-name")) { $0.displayName = $1 }
        note("allow_password_signup", try arguments.bool("allow-password-signup")) { $0.allowPasswordSignup = $1 }
        note("enable_anonymous_user", try arguments.bool("enable-anonymous-user")) { $0.enableAnonymousUser = $1 }
        note("enable_email_link_signin", try arguments.bool("enable-email-link-signin")) {
            $0.enableEmailLinkSignin = $1
        }
        try notePhone(arguments)
        try noteSecondFactors(arguments)
        note("password_policy", try Self.passwordPolicy(arguments)) { $0.passwordPolicy = $1 }
        note("enable_email_privacy", try arguments.bool("enable-email-privacy")) { $0.enableEmailPrivacy = $1 }
        note("allow_international_email", try arguments.bool("allow-international-email")) {
            $0.allowInternationalEmail = $1
        }
        note("allow_costly_hashes", try arguments.bool("allow-costly-hashes")) { $0.allowCostlyHashes = $1 }
        note("disable_auth", try arguments.bool("disable-auth")) { $0.disableAuth = $1 }
        note("refresh_mode", try arguments.choice("refresh-mode", of: [("rotate", .rotate), ("reuse", .reuse)])) {
            $0.refreshMode = $1
        }
        note("session_idle_seconds", try arguments.wholeSeconds("session-idle")) { $0.sessionIdleSeconds = $1 }
        note("session_absolute_seconds", try arguments.wholeSeconds("session-absolute")) {
            $0.sessionAbsoluteSeconds = $1
        }
        note("recent_login_seconds", try arguments.wholeSeconds("recent-login")) { $0.recentLoginSeconds = $1 }
        try noteQuotasAndSuspension(arguments)
        note("allowed_continue_domains", try Self.list("allowed-continue-domains", arguments)) {
            $0.allowedContinueDomains = $1
        }
        note("allow_loopback_continue_url", try arguments.bool("allow-loopback-continue-url")) {
            $0.allowLoopbackContinueURL = $1
        }
        var permissions = ClientPermissions()
        note("client.permissions.disabled_user_signup", try arguments.bool("disabled-user-signup")) {
            permissions.disabledUserSignup = $1
            $0.client = ClientConfig(permissions: permissions)
        }
        note("client.permissions.disabled_user_deletion", try arguments.bool("disabled-user-deletion")) {
            permissions.disabledUserDeletion = $1
            $0.client = ClientConfig(permissions: permissions)
        }
        noteGuidance(arguments)
    }

    private mutating func noteGuidance(_ arguments: Arguments) {
        guidanceMessage = arguments.text("guidance-message")
        guidanceURL = arguments.text("guidance-url")
        guidanceLocale = arguments.text("guidance-locale")
        if guidanceMessage != nil || guidanceURL != nil || guidanceLocale != nil {
            paths.append("guidance")
            complete(guidance: Guidance())
        }
    }

    private mutating func notePhone(_ arguments: Arguments) throws(CommandError) {
        note("enable_phone_signin", try arguments.bool("enable-phone-signin")) { $0.enablePhoneSignin = $1 }
        note("allowed_sms_regions", try Self.list("allowed-sms-regions", arguments)) { $0.allowedSMSRegions = $1 }
        note("blocked_sms_regions", try Self.list("blocked-sms-regions", arguments)) { $0.blockedSMSRegions = $1 }
        guard let numbers = try arguments.elementsOrNone("test-phone-numbers") else { return }
        var tests: [TestPhoneNumber] = []
        for pair in numbers {
            let parts = pair.split(separator: "=")
            guard parts.count == 2 else {
                throw .usage("--test-phone-numbers is NUMBER=CODE,…", hint: "for example +14155550123=123456")
            }
            tests.append(TestPhoneNumber(phoneNumber: Text(String(parts[0])), code: Text(String(parts[1]))))
        }
        note("test_phone_numbers", tests) { $0.testPhoneNumbers = $1 }
    }

    private mutating func noteSecondFactors(_ arguments: Arguments) throws(CommandError) {
        let states: [(String, SecondFactorState)] = [
            ("disabled", .disabled), ("enabled", .enabled), ("mandatory", .mandatory),
        ]
        note("second_factor_state", try arguments.choice("second-factors", of: states)) { $0.secondFactorState = $1 }
        guard let names = try arguments.elementsOrNone("allowed-second-factors") else { return }
        var kinds: [SecondFactorKind] = []
        for name in names {
            switch name {
            case "phone": kinds.append(.phone)
            case "totp": kinds.append(.totp)
            default: throw .usage("--allowed-second-factors has phone and totp, not \"\(name)\"")
            }
        }
        note("allowed_second_factors", kinds) { $0.allowedSecondFactors = $1 }
    }

    private mutating func note<Value>(_ path: Text, _ value: Value?, _ set: (inout Tenant, Value) -> Void) {
        guard let value else { return }
        set(&tenant, value)
        paths.append(path)
    }

    /// Reads settings of which most need a project-admin.
    private mutating func noteQuotasAndSuspension(_ arguments: Arguments) throws(CommandError) {
        note("anonymous_user_expiry_seconds", try arguments.wholeSeconds("anonymous-user-expiry")) {
            $0.anonymousUserExpirySeconds = $1
        }
        note("event_retention_seconds", try arguments.wholeSeconds("event-retention")) {
            $0.eventRetentionSeconds = $1
        }
        note("suspended", try arguments.bool("suspended")) { $0.suspended = $1 }
        note("suspension_reason", arguments.text("suspension-reason")) { $0.suspensionReason = $1 }
        var quotas = TenantQuotas()
        note("quotas.stored_bytes", try arguments.integer("quota-stored-bytes", in: 0...Int64.max)) {
            quotas.storedBytes = $1
            $0.quotas = quotas
        }
        note("quotas.mutations_per_second", try arguments.integer("quota-mutations-per-second", in: 0...Int64.max)) {
            quotas.mutationsPerSecond = $1
            $0.quotas = quotas
        }
        note("quotas.anonymous_sign_ups_per_hour", try arguments.integer("quota-anonymous-sign-ups", in: 0...Int64.max))
        {
            quotas.anonymousSignUpsPerHour = $1
            $0.quotas = quotas
        }
        note("quotas.sms_per_hour", try arguments.integer("quota-sms", in: 0...Int64.max)) {
            quotas.smsPerHour = $1
            $0.quotas = quotas
        }
    }

    /// The guidance is replaced as a whole: parts that the command line does not name come from the present guidance.
    var isGuidancePartial: Bool {
        paths.contains("guidance") && (guidanceMessage == nil || guidanceURL == nil || guidanceLocale == nil)
    }

    mutating func complete(guidance: Guidance) {
        tenant.guidance = Guidance(
            locale: guidanceLocale ?? guidance.locale, message: guidanceMessage ?? guidance.message,
            helpURL: guidanceURL ?? guidance.helpURL)
    }

    /// "a,b"; "none" is an empty list.
    private static func list(_ flag: String, _ arguments: Arguments) throws(CommandError) -> [Text]? {
        guard let elements = try arguments.elementsOrNone(flag) else { return nil }
        return elements.map { Text($0) }
    }

    private static func passwordPolicy(_ arguments: Arguments) throws(CommandError) -> PasswordPolicy? {
        guard let rules = try arguments.elementsOrNone("password-policy") else { return nil }
        var policy = PasswordPolicy()
        for rule in rules {
            switch rule {
            case "lowercase": policy.requireLowercase = true
            case "uppercase": policy.requireUppercase = true
            case "digit": policy.requireDigit = true
            case "symbol": policy.requireSymbol = true
            case "force": policy.forceUpgradeOnSignIn = true
            default:
                guard rule.hasPrefix("min="), let length = Int32(rule.dropFirst(4)) else {
                    throw .usage(
                        "--password-policy: there is no rule \(rule)", hint: "the rules are \(passwordRules)")
                }
                policy.minLength = length
            }
        }
        return policy
    }
}
