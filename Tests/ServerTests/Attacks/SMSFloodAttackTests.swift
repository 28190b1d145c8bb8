import Base
import Crypto
import Glibc
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// An attacker makes others' phones ring, or the tenant pay.
@Suite struct SMSFloodAttackTests {
    private static let number = PhoneSignInTests.number
    private static let tooMany = "TOO_MANY_ATTEMPTS_TRY_LATER"

    private static func send(
        _ client: RawClient, to number: Text, from address: Text = .empty, tenantID: Text = .empty,
        deviceToken: Text = .empty
    ) -> Failure {
        failure {
            let _: AccountsSendVerificationCodeResponse = try client.call(
                "postern.v1.Accounts/SendVerificationCode",
                AccountsSendVerificationCodeRequest(
                    tenantID: tenantID, phoneNumber: number, endUserIP: address, deviceToken: deviceToken))
        }
    }

    /// "+1415555…", different for each place.
    private static func number(_ place: Int) -> Text { Text("+1415555\(1_000 + place)") }

    @Test func `A number gets five codes an hour and fifteen a day, whoever asks from where`() async throws {
        try await withServer { server in
            try IdentityClient(server).allowPhones()
            let client = try server.client(as: .app, of: nil, trustsEndUserIP: true)
            func send(_ place: Int) -> Failure { Self.send(client, to: Self.number, from: Text("192.0.2.\(place)")) }
            for place in 0..<5 { #expect(send(place).reason.isEmpty) }
            let refused = send(5)
            #expect(refused.reason == Self.tooMany)
            #expect(refused.retryAfter.map { $0 > .minutes(11) && $0 <= .minutes(12) } == true)
            // The wait ends, and refused requests do not count.
            server.clock.advance(by: refused.retryAfter ?? .zero)
            #expect(send(5).reason.isEmpty)
            var sent = 6
            for place in 6..<80 {
                server.clock.advance(by: .minutes(12))
                if send(place).reason.isEmpty { sent += 1 }
            }
            // 15, and the codes that leaked away in 15 hours.
            #expect((23...26).contains(sent))
        }
    }

    @Test func `Strangers who use up a number's codes do not keep its owner out at home`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let app = try server.client(as: .app, of: nil, trustsEndUserIP: true)
            let code = try client.code(to: Self.number)
            let _: AccountsSignInWithPhoneNumberResponse = try app.call(
                "postern.v1.Accounts/SignInWithPhoneNumber",
                AccountsSignInWithPhoneNumberRequest(
                    sessionInfo: code.sessionInfo, code: code.code, endUserIP: "203.0.113.7"))
            for place in 0..<6 { _ = Self.send(app, to: Self.number, from: Text("192.0.2.\(place)")) }
            #expect(Self.send(app, to: Self.number, from: "192.0.2.9").reason == Self.tooMany)
            #expect(Self.send(app, to: Self.number, from: "203.0.113.7").reason.isEmpty)
            // An application that is not trusted cannot claim to be at that address.
            let untrusted = try server.client(as: .app, of: nil)
            #expect(Self.send(untrusted, to: Self.number, from: "203.0.113.7").reason == Self.tooMany)
        }
    }

    @Test func `A device that signed in before gets codes in any network, while strangers use up the number's`()
        async throws
    {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let own = try client.signIn(phone: Self.number).deviceToken
            let foreign = try client.signIn(phone: Self.number(1)).deviceToken
            let strangers = try server.client(as: .app, of: nil)
            while Self.send(strangers, to: Self.number).reason.isEmpty {}
            // The token of another account's device is none.
            for token in ["", foreign, "AAAA"] as [Text] {
                #expect(Self.send(strangers, to: Self.number, deviceToken: token).reason == Self.tooMany)
            }
            for _ in 0..<5 {
                #expect(Self.send(strangers, to: Self.number, deviceToken: own).reason.isEmpty)
            }
            #expect(Self.send(strangers, to: Self.number, deviceToken: own).reason == Self.tooMany)
            #expect(try client.mails().count { $0.message.to == Self.number } == 10)
        }
    }

    /// Somebody has the password and asks for codes to the second factor.
    @Test func `A device that showed the second factor gets its codes, while a thief of the first asks for them`()
        async throws
    {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            try client.setFactors(.enabled)
            let ada = try client.verifiedUser("ada@example.com")
            let factor = try client.enrollPhone(Self.number, ada.idToken)
            func start(_ deviceToken: Text) -> Failure {
                failure {
                    let pending = try client.pending { _ = try client.signIn("ada@example.com") }
                    server.clock.advance(by: .milliseconds(1))
                    let _: AccountsStartMfaSignInResponse = try client.client.call(
                        "postern.v1.Accounts/StartMfaSignIn",
                        AccountsStartMfaSignInRequest(
                            pendingCredential: pending, factorID: factor.factorID, deviceToken: deviceToken))
                }
            }
            while start("").reason.isEmpty {}
            #expect(start("").reason == Self.tooMany)
            #expect(start(factor.deviceToken).reason.isEmpty)
        }
    }

    @Test func `Strangers who know a number do not keep its owner from the second factor`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            try client.setFactors(.enabled)
            let ada = try client.verifiedUser("ada@example.com")
            let factorID = try client.enrollPhone(Self.number, ada.idToken).factorID
            let strangers = try server.client(as: .app, of: nil)
            for _ in 0..<5 { _ = Self.send(strangers, to: Self.number) }
            #expect(Self.send(strangers, to: Self.number).reason == Self.tooMany)

            func pending() throws -> Secret { try client.pending { _ = try client.signIn("ada@example.com") } }
            let mine = try pending()
            let sent = try client.startSMS(mine, factorID)
            let phone = PhoneCredential(
                sessionInfo: sent.sessionInfo, code: try client.newestCode(to: Self.number))
            _ = try client.finish(mine, factorID, .phone(phone))
            // Somebody who has the password makes the phone ring no more often than that.
            for _ in 0..<4 { _ = try client.startSMS(try pending(), factorID) }
            expectRefusal(Self.tooMany) { _ = try client.startSMS(try pending(), factorID) }
        }
    }

    @Test func `Strangers who spend what all users share do not keep them from the second factor`() async throws {
        try await withServer(configure: { $0.limits.smsPerRegionAndHour = 10 }) { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            try client.setFactors(.enabled)
            func enroll(_ email: Text, _ places: [Int]) throws -> [Text] {
                var idToken = try client.verifiedUser(email).idToken
                return try places.map { place in
                    let done = try client.enrollPhone(Self.number(place), idToken)
                    idToken = try #require(done.tokens?.idToken)
                    return done.factorID
                }
            }
            func ask(_ email: Text, _ factorID: Text) -> Failure {
                failure {
                    let pending = try client.pending { _ = try client.signIn(email) }
                    _ = try client.startSMS(pending, factorID)
                }
            }
            let ada = try enroll("ada@example.com", [100, 101])
            let bob = try enroll("bob@example.com", [102])
            let eve = try enroll("eve@example.com", [103])
            let strangers = try server.client(as: .app, of: nil)
            func isRefused(_ failure: Failure) -> Bool { failure.metadata("quota") == "region_sms" }
            for place in 0..<6 { #expect(Self.send(strangers, to: Self.number(place)).reason.isEmpty) }
            #expect(isRefused(Self.send(strangers, to: Self.number(6))))

            // The bound for one user, whatever the number of phones is, leaves something for others.
            for _ in 0..<5 { #expect(ask("ada@example.com", ada[0]).reason == "") }
            #expect(ask("ada@example.com", ada[1]).reason == Self.tooMany)
            for _ in 0..<5 { #expect(ask("bob@example.com", bob[0]).reason == "") }
            // As much again is spent.
            #expect(isRefused(ask("eve@example.com", eve[0])))
            #expect(isRefused(Self.send(strangers, to: Self.number(7))))
        }
    }

    @Test func `An address, a tenant, a credential and a region have budgets of their own`() async throws {
        try await withServer(configure: {
            $0.limits.smsPerAddressAndHour = 3
            $0.limits.smsPerRegionAndHour = 4
        }) { server in
            try IdentityClient(server).allowPhones(["quotas.sms_per_hour"]) { $0.quotas = TenantQuotas(smsPerHour: 6) }
            let client = try server.client(as: .app, of: nil, trustsEndUserIP: true)
            for place in 0..<3 { #expect(Self.send(client, to: Self.number(place), from: "192.0.2.1").reason.isEmpty) }
            #expect(Self.send(client, to: Self.number(3), from: "192.0.2.1").reason == Self.tooMany)
            #expect(Self.send(client, to: Self.number(3), from: "192.0.2.2").reason.isEmpty)

            let region = Self.send(client, to: Self.number(4))
            #expect(region.reason == "QUOTA_EXCEEDED" && region.metadata("quota") == "region_sms")
            #expect(Self.send(client, to: "+4915112345678").reason.isEmpty)
            try server.updateTenant("", ["allowed_sms_regions"]) { $0.allowedSMSRegions = ["US"] }
            #expect(Self.send(client, to: "+4915112345678").reason == "SMS_REGION_NOT_ALLOWED")
            #expect(Self.send(client, to: Self.number(4)).reason.isEmpty)
            let tenant = Self.send(client, to: Self.number(5))
            #expect(tenant.reason == "QUOTA_EXCEEDED" && tenant.metadata("quota") == "tenant_sms")
            let use = try #require(try server.usage(of: "")["tenant_sms"])
            #expect(use.limit == 6 && use.used == 6 && use.refused == 1)

            // A credential has one budget for all tenants.
            let limited = try server.client(as: .app, of: nil, quotas: CallerQuotas(smsPerHour: 2))
            for tenantID in ["acme", "umbrella"] as [Text] {
                try server.makeTenant(tenantID, ["enable_phone_signin"]) { $0.enablePhoneSignin = true }
                #expect(Self.send(limited, to: Self.number, tenantID: tenantID).reason.isEmpty)
            }
            let caller = Self.send(limited, to: Self.number, tenantID: "acme")
            #expect(caller.reason == "QUOTA_EXCEEDED" && caller.metadata("quota") == "caller_sms")
        }
    }

    @Test func `A user has one budget for codes to all numbers`() async throws {
        try await withServer(configure: { $0.limits.smsPerSubjectAndHour = 3 }) { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            let ada = try #require(try client.signUp("ada@example.com").tokens)
            let bob = try #require(try client.signUp("bob@example.com").tokens)
            for place in 0..<3 { try client.sendCode(to: Self.number(place), idToken: ada.idToken) }
            expectRefusal(Self.tooMany) { try client.sendCode(to: Self.number(3), idToken: ada.idToken) }
            try client.sendCode(to: Self.number(3), idToken: bob.idToken)
            // A code for signing in is for no user yet.
            for place in 4..<8 { try client.sendCode(to: Self.number(place)) }
        }
    }

    @Test func `Asking at the same time, and a restart, give no more codes`() async throws {
        try await withTemporaryDirectory { directory in
            let clock = ManualClock()
            let masterKey = MasterKey.generate(random: .system)
            let store = "\(directory)/store"
            mkdir(store, 0o700)
            let key = try await withServer(directory: store, clock: clock, masterKey: masterKey) { server in
                try IdentityClient(server).allowPhones()
                let answers = try await atOnce(20) { _ in Self.send(try server.connect(), to: Self.number).reason }
                let reasons = try answers.map { try $0.get() }
                #expect(reasons.count { $0.isEmpty } == 5)
                return server.adminKey
            }
            try await withServer(directory: store, clock: clock, masterKey: masterKey, adminKey: key) { server in
                let client = try server.connect()
                #expect(Self.send(client, to: Self.number).reason == Self.tooMany)
            }
        }
    }

    @Test func `Budgets that leaked away leave nothing behind`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            for place in 0..<10 { try client.sendCode(to: Self.number(place)) }
            func count() throws -> Int {
                try server.project.store.read { transaction in
                    var count = 0
                    try transaction.scan(Tables.smsBudgets) { _ in
                        count += 1; return true
                    }
                    try transaction.scan(Tables.verificationCodes) { _ in
                        count += 1; return true
                    }
                    return count
                }
            }
            #expect(try count() > 20)
            for _ in 0..<3 {
                server.clock.advance(by: .hours(24))
                await server.project.sweep()
            }
            #expect(try count() == 0)
        }
    }

    @Test func `Where nobody may sign up an unknown number is answered alike and sent nothing`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowPhones()
            _ = try client.signIn(phone: Self.number)
            try client.setTenant(["client.permissions.disabled_user_signup"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
            }
            let count = try client.mails().count
            let unknown = try client.sendCode(to: Self.number(1))
            #expect(unknown.sessionInfo.byteCount == 43 && unknown.expiresAtMicros > 0)
            #expect(try client.mails().count == count)
            for guess in 0..<5 {
                expectRefusal("INVALID_CODE") {
                    _ = try client.signIn(.init(sessionInfo: unknown.sessionInfo, code: Secret("00000\(guess)")))
                }
            }
            expectRefusal("SESSION_EXPIRED") {
                _ = try client.signIn(.init(sessionInfo: unknown.sessionInfo, code: Secret("000009")))
            }
            _ = try client.signIn(phone: Self.number)
        }
    }
}
