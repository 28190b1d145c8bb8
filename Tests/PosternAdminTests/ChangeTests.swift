import Base
import Messages
import TestSupport
import Testing

@testable import PosternAdmin

/// Changes: their masks name what was set and nothing else.
@Suite struct ChangeTests {
    /// The number of the change's properties; a new property without its line in `fields` shows here.
    private static func propertyCount(_ change: Any) -> Int { Mirror(reflecting: change).children.count }

    private static let everySetting = TenantSettingsChange {
        $0.displayName = "Acme"
        $0.disableAuth = false
        $0.allowPasswordSignup = false
        $0.enableAnonymousUser = true
        $0.enableEmailLinkSignin = true
        $0.enableEmailPrivacy = false
        $0.allowInternationalEmail = true
        $0.allowCostlyHashes = true
        $0.disabledUserSignup = true
        $0.disabledUserDeletion = true
        $0.refreshMode = .reuse
        $0.sessionIdle = .hours(1)
        $0.sessionAbsolute = .hours(2)
        $0.recentLogin = .minutes(1)
        $0.passwordPolicy = PasswordPolicy(minLength: 10)
        $0.guidance = Guidance(locale: "en", message: "Ask us.")
        $0.anonymousUserExpiry = .days(90)
        $0.eventRetention = .days(365)
        $0.suspended = true
        $0.suspensionReason = "moved"
        $0.quotas = TenantQuotas(storedBytes: 1 << 30, mutationsPerSecond: 9)
        $0.quotaStoredBytes = 1 << 31
        $0.quotaMutationsPerSecond = 8
        $0.quotaAnonymousSignUpsPerHour = 7
        $0.quotaSMSPerHour = 6
        $0.allowedContinueDomains = ["app.example", "*.apps.example"]
        $0.allowLoopbackContinueURL = true
        $0.enablePhoneSignin = true
        $0.allowedSMSRegions = ["DE", "US"]
        $0.blockedSMSRegions = ["KP"]
        $0.testPhoneNumbers = [TestPhoneNumber(phoneNumber: "+14155550123", code: "123456")]
        $0.secondFactorState = .enabled
        $0.allowedSecondFactors = [.totp]
    }

    @Test func `Nil leaves a user's property as it is, an empty value removes it`() async throws {
        try await AdminScene.run { scene in
            let admin = scene.tenant
            _ = try await admin.createUser(
                uid: "ada", email: "ada@example.com", displayName: "Ada", photoURL: "https://example.com/ada.png",
                phoneNumber: "+15555550100")
            let changed = try await admin.updateUser("ada", UserChange(displayName: "", disabled: true))
            #expect(changed.displayName.isEmpty && changed.disabled)
            #expect(changed.email == "ada@example.com")
            #expect(changed.photoURL == "https://example.com/ada.png")
            let emptied = try await admin.updateUser("ada", UserChange(email: "", photoURL: "", phoneNumber: ""))
            #expect(emptied.email.isEmpty && emptied.photoURL.isEmpty && emptied.phoneNumber.isEmpty)
            #expect(emptied.disabled)
            await expectRefusal("INVALID_UPDATE_MASK") { () throws(Failure) in
                _ = try await admin.updateUser("ada", UserChange())
            }
        }
    }

    @Test func `Every property of a user's change reaches the server`() async throws {
        try await AdminScene.run { scene in
            let change = UserChange(
                email: "ada@example.com", emailVerified: true, password: Secret("correct horse"), displayName: "Ada",
                photoURL: "https://example.com/ada.png", phoneNumber: "+15555550100", disabled: true,
                customClaimsJSON: #"{"role":"editor"}"#,
                linkProviders: [ProviderInfo(providerID: "github.com", rawID: "h-1")],
                unlinkProviderIDs: ["google.com"], revokeTokens: true)
            #expect(change.fields.paths.count == Self.propertyCount(change))
            _ = try await scene.tenant.createUser(uid: "ada")
            let google = ProviderInfo(providerID: "google.com", rawID: "g-1")
            _ = try await scene.tenant.updateUser("ada", UserChange(linkProviders: [google]))
            let user = try await scene.tenant.updateUser("ada", change)
            #expect(user.email == "ada@example.com" && user.emailVerified && user.disabled)
            #expect(user.displayName == "Ada" && user.phoneNumber == "+15555550100")
            #expect(Set(user.providers.map(\.providerID)).isSuperset(of: ["password", "github.com"]))
            #expect(!user.providers.contains { $0.providerID == "google.com" })
            #expect(user.customClaimsJSON == [UInt8](#"{"role":"editor"}"#.utf8) && user.tokensValidAfterMicros > 0)
        }
    }

    @Test func `Every property of a change of settings reaches the server`() async throws {
        try await AdminScene.run { scene in
            let change = Self.everySetting
            #expect(change.fields.paths.count == Self.propertyCount(change))
            let changed = try await scene.tenant.updateSettings(change)
            var wanted = change.fields.message
            wanted.createdAtMicros = changed.createdAtMicros
            wanted.updatedAtMicros = changed.updatedAtMicros
            wanted.revision = changed.revision
            wanted.continueURLRule = .listed
            #expect(changed == wanted)
            let removed = try await scene.tenant.updateSettings(
                TenantSettingsChange {
                    $0.disabledUserSignup = false
                    $0.guidance = Guidance()
                })
            #expect(removed.guidance == nil)
            #expect(removed.client?.permissions == ClientPermissions(disabledUserDeletion: true))
        }
    }

    @Test func `Every property of a provider's change reaches the server`() async throws {
        try await AdminScene.run { scene in
            let change = ProviderChange {
                $0.enabled = false
                $0.displayName = "Corp"
                $0.clientID = "shop"
                $0.clientSecret = Secret("s3cret")
                $0.additionalAudiences = ["shop-ios"]
                $0.issuer = "https://id.example.com"
                $0.endpoints = ProviderEndpoints(jwks: "https://id.example.com/jwks")
                $0.allowHTTPLoopback = true
                $0.allowPrivateAddresses = true
                $0.acceptUnboundAccessTokens = true
                $0.acceptUnknownNonce = true
                $0.trust = ProviderTrust(level: .domains, domains: ["example.com"])
                $0.apple = AppleKey()
            }
            #expect(change.fields.paths.count == Self.propertyCount(change))
            _ = try await scene.tenant.createProvider(
                Provider(providerID: "oidc.corp", clientID: "other", issuer: "https://other.example.com"))
            let changed = try await scene.tenant.updateProvider("oidc.corp", change)
            #expect(!changed.enabled && changed.hasClientSecret && changed.clientID == "shop")
            #expect(changed.endpoints == change.endpoints && changed.trust == change.trust && changed.apple == nil)
            let emptied = try await scene.tenant.updateProvider(
                "oidc.corp",
                ProviderChange {
                    $0.clientSecret = .empty
                    $0.endpoints = ProviderEndpoints()
                    $0.trust = ProviderTrust()
                })
            #expect(!emptied.hasClientSecret && emptied.endpoints == nil && emptied.trust == nil)
        }
    }

    @Test func `Every property of a change of the mail reaches the server`() async throws {
        try await AdminScene.run { scene in
            let template = EmailTemplate(
                requestType: .passwordReset, subject: "Reset", text: "%LINK%", html: "<a href=\"%LINK%\">Reset</a>")
            let change = EmailConfigChange {
                $0.delivery = .webhook
                $0.smtp = SmtpConfig(host: "mail.example.com", port: 587, security: .starttls)
                $0.webhook = WebhookConfig(
                    url: "https://example.com/mail", signingSecret: Secret([UInt8](repeating: 7, count: 32)))
                $0.senderName = "Acme"
                $0.senderAddress = "no-reply@example.com"
                $0.replyTo = "help@example.com"
                $0.actionURL = "https://example.com/action"
                $0.templates = [template]
                $0.allowPrivateAddresses = true
            }
            #expect(change.fields.paths.count == Self.propertyCount(change))
            let changed = try await scene.tenant.updateEmailConfig(change)
            #expect(changed.smtp?.host == "mail.example.com" && changed.webhook?.hasSigningSecret == true)
            #expect(changed.templates == [template] && changed.replyTo == "help@example.com")
            let emptied = try await scene.tenant.updateEmailConfig(
                EmailConfigChange {
                    $0.smtp = SmtpConfig()
                    $0.templates = []
                })
            #expect(emptied.smtp == nil && emptied.templates.isEmpty && emptied.webhook == changed.webhook)
        }
    }

    @Test func `Every property of a change of the SMS reaches the server`() async throws {
        try await AdminScene.run { scene in
            let template = SmsTemplate(purpose: .signIn, locale: "de", text: "Code: %CODE%")
            let change = SMSConfigChange {
                $0.delivery = .webhook
                $0.webhook = WebhookConfig(
                    url: "https://example.com/sms", signingSecret: Secret([UInt8](repeating: 7, count: 32)))
                $0.templates = [template]
                $0.allowPrivateAddresses = true
            }
            #expect(change.fields.paths.count == Self.propertyCount(change))
            let changed = try await scene.tenant.updateSmsConfig(change)
            #expect(changed.webhook?.hasSigningSecret == true && changed.templates == [template])
            let emptied = try await scene.tenant.updateSmsConfig(SMSConfigChange { $0.templates = [] })
            #expect(emptied.templates.isEmpty && emptied.webhook == changed.webhook)
        }
    }

    @Test func `Every property of a service account's change reaches the server`() async throws {
        try await AdminScene.run { scene in
            _ = try await scene.project.createTenant("acme")
            _ = try await scene.project.createServiceAccount("shop-bot")
            let quotas = CallerQuotas(mutationsPerSecond: 1_000, writtenBytesPerHour: 2_000, smsPerHour: 3_000)
            let change = ServiceAccountChange {
                $0.displayName = "Bot"
                $0.role = .tenantAdmin
                $0.scope = Scope(tenants: .tenantID("acme"))
                $0.customTokens = true
                $0.trustedEndUserIP = true
                $0.disabled = true
                $0.quotas = CallerQuotas(smsPerHour: 1)
                $0.quotaMutationsPerSecond = 1_000
                $0.quotaWrittenBytesPerHour = 2_000
                $0.quotaSMSPerHour = 3_000
            }
            #expect(change.fields.paths.count == Self.propertyCount(change))
            let changed = try await scene.project.updateServiceAccount("shop-bot", change)
            #expect(changed.quotas == quotas)
            #expect(changed.displayName == "Bot" && changed.role == .tenantAdmin && changed.scope == change.scope)
            #expect(changed.customTokens && changed.trustedEndUserIP && changed.disabled)
        }
    }

    @Test func `One quota is set, and the others stay`() async throws {
        try await AdminScene.run { scene in
            let project = scene.project
            _ = try await project.createTenant("acme")
            try await project.updateTenant("acme", TenantSettingsChange { $0.quotas = TenantQuotas(storedBytes: 7) })
            let tenant = try await project.updateTenant("acme", TenantSettingsChange { $0.quotaSMSPerHour = 5 })
            #expect(tenant.quotas == TenantQuotas(storedBytes: 7, smsPerHour: 5))

            let before = CallerQuotas(mutationsPerSecond: 1, writtenBytesPerHour: 2, smsPerHour: 3)
            try await project.createServiceAccount("shop-bot")
            try await project.updateServiceAccount("shop-bot", ServiceAccountChange { $0.quotas = before })
            let account = try await project.updateServiceAccount(
                "shop-bot", ServiceAccountChange { $0.quotaWrittenBytesPerHour = 0 })
            #expect(account.quotas == CallerQuotas(mutationsPerSecond: 1, smsPerHour: 3))

            let made = try await project.createApiKey(role: .app, quotas: before)
            let key = try await project.updateApiKeyQuotas(of: made.apiKey.apiKeyID, mutationsPerSecond: 9)
            #expect(key.quotas == CallerQuotas(mutationsPerSecond: 9, writtenBytesPerHour: 2, smsPerHour: 3))
            let all = try await project.setApiKeyQuotas(CallerQuotas(smsPerHour: 4), of: made.apiKey.apiKeyID)
            #expect(all.quotas == CallerQuotas(smsPerHour: 4))
            await expectRefusal("INVALID_UPDATE_MASK") { () throws(Failure) in
                _ = try await project.updateApiKeyQuotas(of: made.apiKey.apiKeyID)
            }
        }
    }
}
