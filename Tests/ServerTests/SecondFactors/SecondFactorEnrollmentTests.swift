import Base
import Messages
import Rules
import TestSupport
import Testing

/// Enrolling second factors, and withdrawing them.
@Suite struct SecondFactorEnrollmentTests {
    private static let number = SecondFactorSignInTests.number

    @Test func `Who may not enroll is told why`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try client.verifiedUser("ada@example.com")
            expectRefusal("SECOND_FACTORS_NOT_ALLOWED") { _ = try client.startApp(tokens.idToken) }
            try client.setFactors(.enabled, [.phone])
            expectRefusal("SECOND_FACTORS_NOT_ALLOWED") { _ = try client.startApp(tokens.idToken) }
            try client.setFactors(.enabled)
            expectRefusal("MISSING_ID_TOKEN") { _ = try client.startApp("") }
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.startApp("abc") }
            let eve = try #require(try client.signUp("eve@example.com").tokens)
            expectRefusal("UNVERIFIED_EMAIL") { _ = try client.startApp(eve.idToken) }
            expectRefusal("MISSING_CREDENTIAL") {
                let _: AccountsStartMfaEnrollmentResponse = try client.client.call(
                    "postern.v1.Accounts/StartMfaEnrollment",
                    AccountsStartMfaEnrollmentRequest(idToken: tokens.idToken))
            }
            expectRefusal("INVALID_PHONE_NUMBER") { _ = try client.startPhone("12", tokens.idToken) }
            server.clock.advance(by: .minutes(6))
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") { _ = try client.startApp(tokens.idToken) }
        }
    }

    @Test func `An authenticator app is enrolled with its first code`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let idToken = try client.verifiedUser("ada@example.com").idToken
            let first = try client.startApp(idToken)
            let started = try client.startApp(idToken)
            let totp = try #require(started.totp)
            #expect(totp.codeLength == 6 && totp.periodSeconds == 30 && totp.algorithm == "SHA1")
            let secret = IdentityClient.secret(totp)
            #expect(secret.byteCount == 20)
            let uri = totp.uri.withBytes { String(decoding: $0, as: UTF8.self) }
            #expect(uri.hasPrefix("otpauth://totp/test%3Aada%40example.com?secret="))
            func code(_ secret: Secret) -> Secret {
                let step = TOTP.step(at: server.clock.clock.now())
                return Secret(TOTP.code(secret: secret, counter: UInt64(step)))
            }
            // The second start made the first one void.
            expectRefusal("INVALID_SESSION_INFO") {
                _ = try client.finalize(first, code(IdentityClient.secret(first.totp)), idToken)
            }
            expectRefusal("INVALID_DISPLAY_NAME") {
                _ = try client.finalize(started, code(secret), idToken, name: Text(String(repeating: "a", count: 65)))
            }
            let done = try client.finalize(started, code(secret), idToken)
            #expect(done.recoveryCodes.count == 10 && done.user?.secondFactors.map(\.factorID) == [done.factorID])
            #expect(try client.lookup(done.tokens?.idToken ?? .empty).secondFactors.count == 1)
            expectRefusal("INVALID_SESSION_INFO") {
                _ = try client.finalize(started, code(secret), done.tokens?.idToken ?? .empty)
            }
        }
    }

    @Test func `What is begun ends with five wrong codes, and after ten minutes`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            try client.setTenant(["recent_login_seconds"]) { $0.recentLoginSeconds = 3_600 }
            let idToken = try client.verifiedUser("ada@example.com").idToken
            func user(_ started: AccountsStartMfaEnrollmentResponse) -> AppUser {
                AppUser(
                    email: "", uid: "", factorID: "", secret: IdentityClient.secret(started.totp), recoveryCodes: [],
                    tokens: TokenPair())
            }
            let started = try client.startApp(idToken)
            for number in 0..<5 {
                expectRefusal("INVALID_CODE") {
                    _ = try client.finalize(started, user(started).wrongCode(server, number), idToken)
                }
            }
            expectRefusal("INVALID_SESSION_INFO") {
                _ = try client.finalize(started, user(started).code(server), idToken)
            }
            let late = try client.startApp(idToken)
            server.clock.advance(by: .minutes(10))
            expectRefusal("SESSION_EXPIRED", cause: "EXPIRED") {
                _ = try client.finalize(late, user(late).code(server), idToken)
            }
        }
    }

    @Test func `There are at most five, and each number once`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            var idToken = try client.verifiedUser("ada@example.com").idToken
            for index in 0..<5 {
                let done = try client.enrollPhone(Text("+1415555012\(index)"), idToken)
                #expect(done.recoveryCodes.count == (index == 0 ? 10 : 0))
                idToken = try #require(done.tokens?.idToken)
                if index == 0 {
                    expectRefusal("SECOND_FACTOR_EXISTS") { _ = try client.startPhone("+14155550120", idToken) }
                }
            }
            expectRefusal("SECOND_FACTOR_LIMIT_EXCEEDED") { _ = try client.startApp(idToken) }
        }
    }

    @Test func `A factor is withdrawn, and the recovery codes go with the one that they came with`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let phone = try client.enrollPhone(Self.number, user.tokens.idToken)
            var idToken = try #require(phone.tokens?.idToken)
            func withdraw(_ factorID: Text) throws -> AccountsWithdrawMfaEnrollmentResponse {
                try client.client.call(
                    "postern.v1.Accounts/WithdrawMfaEnrollment",
                    AccountsWithdrawMfaEnrollmentRequest(idToken: idToken, factorID: factorID))
            }
            expectRefusal("MISSING_MFA_ENROLLMENT_ID") { _ = try withdraw("") }
            expectRefusal("MFA_ENROLLMENT_NOT_FOUND") { _ = try withdraw("nobody") }
            let withoutPhone = try withdraw(phone.factorID)
            #expect(withoutPhone.user?.recoveryCodeCount == 10)
            let again = try client.enrollPhone(Self.number, try #require(withoutPhone.tokens?.idToken))
            #expect(again.recoveryCodes.isEmpty)
            idToken = try #require(again.tokens?.idToken)
            let left = try withdraw(user.factorID)
            idToken = try #require(left.tokens?.idToken)
            #expect(left.user?.secondFactors.map(\.factorID) == [again.factorID])
            #expect(left.user?.recoveryCodeCount == 0)
            expectRefusal("MFA_ENROLLMENT_NOT_FOUND") { _ = try client.finish(try client.pending(user), user) }
            let renewed: AccountsRenewRecoveryCodesResponse = try client.client.call(
                "postern.v1.Accounts/RenewRecoveryCodes", AccountsRenewRecoveryCodesRequest(idToken: idToken))
            #expect(renewed.recoveryCodes.count == 10)
            // All recovery codes go with the last factor.
            #expect(try withdraw(again.factorID).user?.recoveryCodeCount == 0)
            _ = try client.signIn(user.email)
        }
    }

    /// A session from before an administrator added the factor has a recent login for some minutes.
    @Test func `A session that showed no factor changes none`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let older = try client.verifiedUser("ada@example.com")
            let added: UsersAddSecondFactorResponse = try client.client.call(
                "postern.v1.Users/AddSecondFactor",
                UsersAddSecondFactorRequest(uid: try client.lookup(older.idToken).uid, phoneNumber: Self.number))
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") { _ = try client.startApp(older.idToken) }
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") {
                let _: AccountsWithdrawMfaEnrollmentResponse = try client.client.call(
                    "postern.v1.Accounts/WithdrawMfaEnrollment",
                    AccountsWithdrawMfaEnrollmentRequest(idToken: older.idToken, factorID: added.factorID))
            }
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") {
                let _: AccountsRenewRecoveryCodesResponse = try client.client.call(
                    "postern.v1.Accounts/RenewRecoveryCodes", AccountsRenewRecoveryCodesRequest(idToken: older.idToken))
            }
        }
    }

    @Test func `While the tenant asks for no factor, a password alone changes none`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            try client.setFactors(.disabled)
            let thief = try #require(try client.signIn(user.email).tokens)
            func withdraw(_ tokens: TokenPair) throws {
                let _: AccountsWithdrawMfaEnrollmentResponse = try client.client.call(
                    "postern.v1.Accounts/WithdrawMfaEnrollment",
                    AccountsWithdrawMfaEnrollmentRequest(idToken: tokens.idToken, factorID: user.factorID))
            }
            func renew(_ tokens: TokenPair) throws {
                let _: AccountsRenewRecoveryCodesResponse = try client.client.call(
                    "postern.v1.Accounts/RenewRecoveryCodes",
                    AccountsRenewRecoveryCodesRequest(idToken: tokens.idToken))
            }
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") { try withdraw(thief) }
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") { try renew(thief) }
            #expect(try client.get(user.uid).secondFactors.map(\.factorID) == [user.factorID])
            // The session in which the factor was enrolled has shown it.
            try renew(user.tokens)
            try withdraw(user.tokens)
            #expect(try client.get(user.uid).secondFactors.isEmpty)
        }
    }

    @Test func `The mail about a new factor takes it back`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let mail = try #require(
                try client.mails().first { $0.message.requestType == .revertSecondFactorAddition })
            #expect(mail.message.to == user.email)
            #expect(mail.contents.link.string.contains("mode=revertSecondFactorAddition"))
            #expect(try client.checkOob(mail.code).requestType == .revertSecondFactorAddition)
            let applied = try client.applyOob(mail.code)
            #expect(applied.email == user.email)
            #expect(try client.get(user.uid).secondFactors.isEmpty)
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(user.tokens.idToken) }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(mail.code) }
        }
    }
}
