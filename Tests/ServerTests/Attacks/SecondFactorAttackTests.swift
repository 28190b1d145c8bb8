import Base
import Identity
import Messages
import TestSupport
import Testing

/// An attacker has a user's first factor, and wants to get in.
@Suite struct SecondFactorAttackTests {
    @Test func `Of a thousand guesses at the same time five are judged`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let pending = try client.pending(user)
            let wrong = user.wrongCode(server)
            let answers = try await atOnce(20) { _ in
                let guesser = try IdentityClient(server)
                return (0..<50).map { _ in failure { _ = try guesser.finish(pending, user, wrong) }.reason }
            }
            let reasons = try answers.flatMap { try $0.get() }
            #expect(reasons.count == 1_000 && reasons.count { $0 == "INVALID_CODE" } == 5)
            #expect(Set(reasons) == ["INVALID_CODE", "INVALID_MFA_PENDING_CREDENTIAL"])
            expectRefusal("INVALID_MFA_PENDING_CREDENTIAL") { _ = try client.finish(pending, user) }
        }
    }

    @Test func `Many pending sign-ins share one budget, and the owner's device has its own`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let deviceToken = try client.finish(try client.pending(user), user).deviceToken
            server.clock.advance(by: .seconds(60))
            let wrong = user.wrongCode(server)
            let answers = try await atOnce(4) { _ in
                let guesser = try IdentityClient(server)
                return try (0..<50).flatMap { _ in
                    let pending = try guesser.pending(user)
                    return (0..<5).map { _ in failure { _ = try guesser.finish(pending, user, wrong) } }
                }
            }
            let refused = try answers.flatMap { try $0.get() }
            #expect(refused.count == 1_000 && refused.count { $0.reason == "INVALID_CODE" } == 10)
            let late = refused.filter { $0.reason == "TOO_MANY_ATTEMPTS_TRY_LATER" }
            #expect(late.count >= 900 && late.allSatisfy { $0.retryAfter != nil })
            // From an unknown device even the right code has to wait.
            let pending = try client.pending(user)
            expectRefusal("TOO_MANY_ATTEMPTS_TRY_LATER") { _ = try client.finish(pending, user) }
            _ = try client.finish(
                pending, user.factorID, .totpCode(user.code(server)), deviceToken: deviceToken)
            // The account is not locked: a day later there are guesses again.
            server.clock.advance(by: .hours(24))
            let next = try client.pending(user)
            _ = try client.finish(next, user)
        }
    }

    @Test func `A pending sign-in is its user's and its tenant's`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let ada = try client.appUser("ada@example.com")
            let eve = try client.appUser("eve@example.com")
            let pending = try client.pending(ada)
            // Eve's app has another secret, and another id.
            expectRefusal("MFA_ENROLLMENT_NOT_FOUND") { _ = try client.finish(pending, eve) }
            expectRefusal("INVALID_CODE") {
                _ = try client.finish(pending, ada.factorID, .totpCode(eve.code(server)))
            }
            expectRefusal("INVALID_CODE") {
                _ = try client.finish(pending, "", .recoveryCode(eve.recoveryCodes[0]))
            }
            try server.makeTenant("acme", ["second_factor_state"]) { $0.secondFactorState = .enabled }
            expectRefusal("INVALID_MFA_PENDING_CREDENTIAL") {
                _ = try client.finish(pending, ada.factorID, .totpCode(ada.code(server)), tenantID: "acme")
            }
            for forged in ["", "x", String(repeating: "A", count: 86)] where !forged.isEmpty {
                expectRefusal("INVALID_MFA_PENDING_CREDENTIAL") { _ = try client.finish(Secret(forged), ada) }
            }
            expectRefusal("INVALID_ID_TOKEN") {
                _ = try client.lookup(Text(unchecked: pending.withBytes { [UInt8]($0) }))
            }
            _ = try client.finish(pending, ada)
        }
    }

    @Test func `A code counts once, also at the same time`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let pendings = try (0..<8).map { _ in try client.pending(user) }
            let code = user.code(server)
            let answers = try await atOnce(8) { number in
                failure { _ = try IdentityClient(server).finish(pendings[number], user, code) }.reason
            }
            let reasons = try answers.map { try $0.get() }
            #expect(reasons.count { $0.isEmpty } == 1 && reasons.count { $0 == "INVALID_CODE" } == 7)
            // The code of an earlier step does not count any more either.
            expectRefusal("INVALID_CODE") {
                _ = try client.finish(try client.pending(user), user, user.code(server, steps: -1))
            }
        }
    }

    @Test func `A recovery code counts once, also at the same time`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let pendings = try (0..<8).map { _ in try client.pending(user) }
            let answers = try await atOnce(8) { number in
                failure {
                    _ = try IdentityClient(server).finish(pendings[number], "", .recoveryCode(user.recoveryCodes[0]))
                }.reason
            }
            let reasons = try answers.map { try $0.get() }
            #expect(reasons.count { $0.isEmpty } == 1 && reasons.count { $0 == "INVALID_CODE" } == 7)
            #expect(try client.get(user.uid).recoveryCodeCount == 9)
        }
    }

    @Test func `A clock that is off by more than a step does not do`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            for steps in [-2, 2] as [Int64] {
                expectRefusal("INVALID_CODE") {
                    _ = try client.finish(try client.pending(user), user, user.code(server, steps: steps))
                }
            }
            _ = try client.finish(try client.pending(user), user, user.code(server, steps: 1))
        }
    }

    @Test func `What happens to the account half-way ends the sign-in`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let disabled = try client.pending(user)
            try client.update(user.uid, ["disabled"]) { $0.disabled = true }
            expectRefusal("USER_DISABLED") { _ = try client.finish(disabled, user) }
            try client.update(user.uid, ["disabled"]) { $0.disabled = false }
            // Disabling ended every session, and every sign-in that was pending.
            expectRefusal("INVALID_MFA_PENDING_CREDENTIAL") { _ = try client.finish(disabled, user) }
            let changed = try client.pending(user)
            try client.update(user.uid, ["password"]) { $0.password = Secret("correct horse") }
            expectRefusal("INVALID_MFA_PENDING_CREDENTIAL") { _ = try client.finish(changed, user) }
            let deleted = try client.pending(user)
            let _: UsersDeleteResponse = try client.client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: user.uid))
            expectRefusal("INVALID_MFA_PENDING_CREDENTIAL") { _ = try client.finish(deleted, user) }
        }
    }

    @Test func `An SMS is good for the sign-in that asked for it`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            try client.allowPhones()
            let number = SecondFactorSignInTests.number
            let email: Text = "ada@example.com"
            let factorID = try client.enrollPhone(number, try client.verifiedUser(email).idToken).factorID
            let (mine, theirs) = (
                try client.pending { _ = try client.signIn(email) }, try client.pending { _ = try client.signIn(email) }
            )
            let sent = try client.startSMS(mine, factorID)
            let code = try client.newestCode(to: number)
            let shown = AccountsFinalizeMfaSignInRequest.Proof.phone(
                PhoneCredential(sessionInfo: sent.sessionInfo, code: code))
            expectRefusal("INVALID_SESSION_INFO") { _ = try client.finish(theirs, factorID, shown) }
            // A code for a factor does not sign in by phone, and a code of a sign-in by phone is no second factor.
            expectRefusal("INVALID_SESSION_INFO") {
                _ = try client.signIn(IdentityClient.PhoneCode(sessionInfo: sent.sessionInfo, code: code))
            }
            let other = try client.code(to: number)
            expectRefusal("INVALID_SESSION_INFO") {
                _ = try client.finish(
                    mine, factorID, .phone(PhoneCredential(sessionInfo: other.sessionInfo, code: other.code)))
            }
            _ = try client.finish(mine, factorID, shown)
        }
    }

    @Test func `Whoever has the phone alone does not sign in by it twice`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            try client.allowPhones()
            let number = SecondFactorSignInTests.number
            let email: Text = "ada@example.com"
            let enrolled = try client.enrollPhone(number, try client.verifiedUser(email).idToken)
            let uid = try #require(enrolled.user?.uid)
            try client.update(uid, ["phone_number"]) { $0.phoneNumber = number }
            let refused = failure { _ = try client.signIn(phone: number) }
            #expect(refused.metadata("second_factors") == "[]")
            let pending = Secret(refused.metadata("pending_credential") ?? "")
            expectRefusal("MFA_ENROLLMENT_NOT_FOUND") { _ = try client.startSMS(pending, enrolled.factorID) }
            _ = try client.startSMS(try client.pending { _ = try client.signIn(email) }, enrolled.factorID)
            _ = try client.finish(pending, "", .recoveryCode(enrolled.recoveryCodes[0]))
        }
    }

    /// Whoever has the password alone signs in from many addresses while no factor is asked for.
    @Test func `Addresses that signed in without the factor are not known`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let app = try server.client(as: .app, of: nil, trustsEndUserIP: true)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            try client.setFactors(.disabled)
            let addresses: [Text] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
            for address in addresses {
                let _: AccountsSignInWithPasswordResponse = try app.call(
                    "postern.v1.Accounts/SignInWithPassword",
                    AccountsSignInWithPasswordRequest(
                        email: user.email, password: Secret("correct horse"), endUserIP: address))
            }
            try client.setFactors(.enabled)
            let reasons = try (0..<15).map { number in
                let pending = try client.pending(user)
                return failure {
                    let _: AccountsFinalizeMfaSignInResponse = try app.call(
                        "postern.v1.Accounts/FinalizeMfaSignIn",
                        AccountsFinalizeMfaSignInRequest(
                            pendingCredential: pending, factorID: user.factorID,
                            proof: .totpCode(user.wrongCode(server)), endUserIP: addresses[number % 3]))
                }.reason
            }
            #expect(reasons.count { $0 == "INVALID_CODE" } == 10)
            #expect(reasons.last == "TOO_MANY_ATTEMPTS_TRY_LATER")
        }
    }

    /// The attacker enrolls an app under its own address, and then takes the victim's address without verifying it.
    @Test func `A factor does not keep the owner of an email from it`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            try client.setFactors(.enabled)
            let thief = try client.appUser("thief@example.com")
            _ = try EmailRecoveryTests.move(client, to: "victim@example.com", thief.tokens.idToken)
            // No way back tells any more that the account had another email.
            server.clock.advance(by: .hours(24 * 7) + .minutes(1))
            try client.sendOob(.emailSignin, email: "victim@example.com")
            let mail = try #require(try client.mails().first)
            let victim = try client.signIn("victim@example.com", link: mail.code)
            #expect(victim.user?.uid != thief.uid)
            #expect(try client.get(thief.uid).email.isEmpty)
            #expect(try client.get(thief.uid).secondFactors.count == 1)
        }
    }
}
