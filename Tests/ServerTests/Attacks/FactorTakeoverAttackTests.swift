import Base
import Identity
import Messages
import Rules
import TestSupport
import Testing

/// An attacker was in an account before its owner had a second factor, or for a while afterwards, and wants to stay.
@Suite struct FactorTakeoverAttackTests {
    private static let number: Text = "+14155550199"

    private static func wrong(_ client: IdentityClient, _ user: AppUser, from deviceToken: Text) -> String {
        failure {
            _ = try client.finish(
                try client.pending(user), user.factorID, .totpCode(user.wrongCode(client.server)),
                deviceToken: deviceToken)
        }.reason
    }

    @Test func `Devices that signed in before there was a factor are not known afterwards`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let tokens = try client.verifiedUser("ada@example.com")
            let hoarded = try (0..<3).map { _ in try client.signIn("ada@example.com").deviceToken }
            let user = try client.enrollApp("ada@example.com", tokens.idToken)
            let reasons = (0..<15).map { Self.wrong(client, user, from: hoarded[$0 % 3]) }
            #expect(reasons.count { $0 == "INVALID_CODE" } == 10)
            #expect(reasons.last == "TOO_MANY_ATTEMPTS_TRY_LATER")
        }
    }

    /// Shows a code for a new pending sign-in, from an address.
    private static func show(
        _ code: Secret, of user: AppUser, _ client: IdentityClient, _ app: RawClient, from address: Text
    ) -> String {
        failure {
            let pending = try client.pending(user)
            let _: AccountsFinalizeMfaSignInResponse = try app.call(
                "postern.v1.Accounts/FinalizeMfaSignIn",
                AccountsFinalizeMfaSignInRequest(
                    pendingCredential: pending, factorID: user.factorID, proof: .totpCode(code), endUserIP: address))
        }.reason
    }

    private static func signIn(_ app: RawClient, _ email: Text, from address: Text) throws {
        let _: AccountsSignInWithPasswordResponse = try app.call(
            "postern.v1.Accounts/SignInWithPassword",
            AccountsSignInWithPasswordRequest(email: email, password: Secret("correct horse"), endUserIP: address))
    }

    @Test func `Addresses that signed in before there was a factor are not known afterwards`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let app = try server.client(as: .app, of: nil, trustsEndUserIP: true)
            try client.setFactors(.enabled)
            let tokens = try client.verifiedUser("ada@example.com")
            let addresses: [Text] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
            for address in addresses { try Self.signIn(app, "ada@example.com", from: address) }
            let user = try client.enrollApp("ada@example.com", tokens.idToken)
            let reasons = (0..<15).map {
                Self.show(user.wrongCode(server), of: user, client, app, from: addresses[$0 % 3])
            }
            #expect(reasons.count { $0 == "INVALID_CODE" } == 10)
            #expect(reasons.last == "TOO_MANY_ATTEMPTS_TRY_LATER")
        }
    }

    @Test func `The address from which the first factor was enrolled is known`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let app = try server.client(as: .app, of: nil, trustsEndUserIP: true)
            try client.setFactors(.enabled)
            let tokens = try client.verifiedUser("ada@example.com")
            let (home, elsewhere): (Text, Text) = ("203.0.113.7", "192.0.2.1")
            try Self.signIn(app, "ada@example.com", from: elsewhere)
            let started = try client.startApp(tokens.idToken)
            func user(_ factorID: Text) -> AppUser {
                AppUser(
                    email: "ada@example.com", uid: "", factorID: factorID,
                    secret: IdentityClient.secret(started.totp), recoveryCodes: [], tokens: tokens)
            }
            server.clock.advance(by: .milliseconds(1))
            let done: AccountsFinalizeMfaEnrollmentResponse = try app.call(
                "postern.v1.Accounts/FinalizeMfaEnrollment",
                AccountsFinalizeMfaEnrollmentRequest(
                    idToken: tokens.idToken, sessionInfo: started.sessionInfo, code: user("").code(server),
                    displayName: "app", endUserIP: home))
            server.clock.advance(by: .seconds(60))
            let ada = user(done.factorID)
            for _ in 0..<10 { _ = Self.wrong(client, ada, from: "") }
            let stranger = Self.show(ada.code(server), of: ada, client, app, from: elsewhere)
            #expect(stranger == "TOO_MANY_ATTEMPTS_TRY_LATER")
            #expect(Self.show(ada.code(server), of: ada, client, app, from: home).isEmpty)
        }
    }

    @Test func `A reset of the password makes no device known, and leaves the owner's known`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let owner = try client.finish(try client.pending(user), user).deviceToken
            server.clock.advance(by: .seconds(60))
            try client.sendOob(.passwordReset, email: user.email)
            let mail = try #require(try client.mails().first { $0.message.requestType == .passwordReset })
            let thief = try client.resetPassword(mail.code, "correct horse").deviceToken
            let reasons = (0..<15).map { _ in Self.wrong(client, user, from: thief) }
            #expect(reasons.count { $0 == "INVALID_CODE" } == 10)
            // It is the strangers' budget: without any token no code is judged either.
            #expect(Self.wrong(client, user, from: "") == "TOO_MANY_ATTEMPTS_TRY_LATER")
            _ = try client.finish(
                try client.pending(user), user.factorID, .totpCode(user.code(server)), deviceToken: owner)
        }
    }

    @Test func `A link in a session that showed no factor makes no device known`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setFactors(.enabled)
            let user = try client.appUser()
            try client.setFactors(.disabled)
            let tokens = try #require(try client.signIn(user.email).tokens)
            let linked = try client.signIn(.google(), linkingTo: tokens.idToken).deviceToken
            try client.setFactors(.enabled)
            for _ in 0..<10 { _ = Self.wrong(client, user, from: "") }
            #expect(Self.wrong(client, user, from: linked) == "TOO_MANY_ATTEMPTS_TRY_LATER")
        }
    }

    @Test func `A new password in a session that showed a factor leaves its device known`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let changed: AccountsUpdateResponse = try client.client.call(
                "postern.v1.Accounts/Update",
                AccountsUpdateRequest(
                    idToken: user.tokens.idToken, updateMask: ProtobufFieldMask(paths: ["password"]),
                    password: Secret("correct horse")))
            for _ in 0..<10 { _ = Self.wrong(client, user, from: "") }
            _ = try client.finish(
                try client.pending(user), user.factorID, .totpCode(user.code(server)), deviceToken: changed.deviceToken)
        }
    }

    @Test func `All known devices together have a budget, too`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let devices = try (0..<4).map { _ in
                server.clock.advance(by: .seconds(60))
                return try client.finish(try client.pending(user), user).deviceToken
            }
            let reasons = devices.map { device in (0..<11).map { _ in Self.wrong(client, user, from: device) } }
            let judged = reasons.map { $0.count { $0 == "INVALID_CODE" } }
            #expect(judged == [10, 10, 10, 0])
        }
    }

    @Test func `Getting the email back takes the thief's factor away`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let tokens = try client.verifiedUser("ada@example.com")
            try client.sendOob(.verifyAndChangeEmail, newEmail: "thief@example.com", idToken: tokens.idToken)
            let change = try #require(
                try client.mails().first { $0.message.requestType == .verifyAndChangeEmail })
            _ = try client.applyOob(change.code)
            let thief = try client.enrollApp(
                "thief@example.com", try #require(try client.signIn("thief@example.com").tokens).idToken)
            let wayBack = try #require(try client.mails().first { $0.message.requestType == .recoverEmail })
            #expect(try client.applyOob(wayBack.code).email == "ada@example.com")
            let account = try client.get(thief.uid)
            #expect(account.secondFactors.isEmpty && account.recoveryCodeCount == 0)
        }
    }

    /// The thief's factor is the later one, although its node's clock says that it is the earlier one.
    @Test func `Getting the email back takes away a factor of a node whose clock is behind`() async throws {
        let clocks = (ManualClock(), ManualClock(startingAt: ManualClock().clock.now() - .seconds(2)))
        try await withTwoNodes(clock: clocks.0, secondClock: clocks.1) { nodes in
            let (one, two) = (try IdentityClient(nodes.first), try IdentityClient(nodes.second))
            try one.setFactors(.enabled)
            let tokens = try one.verifiedUser("ada@example.com")
            try one.sendOob(.verifyAndChangeEmail, newEmail: "thief@example.com", idToken: tokens.idToken)
            let change = try #require(
                try one.mails().first { $0.message.requestType == .verifyAndChangeEmail })
            _ = try one.applyOob(change.code)
            let wayBack = try #require(try one.mails().first { $0.message.requestType == .recoverEmail })
            let thief = try two.enrollApp(
                "thief@example.com", try #require(try two.signIn("thief@example.com").tokens).idToken)
            #expect(try two.get(thief.uid).secondFactors.map(\.factorID) == [thief.factorID])
            #expect(try one.applyOob(wayBack.code).email == "ada@example.com")
            let account = try one.get(thief.uid)
            #expect(account.secondFactors.isEmpty && account.recoveryCodeCount == 0)
        }
    }

    @Test func `A factor of before the theft stays when the email comes back`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            try client.sendOob(.verifyAndChangeEmail, newEmail: "thief@example.com", idToken: user.tokens.idToken)
            let change = try #require(
                try client.mails().first { $0.message.requestType == .verifyAndChangeEmail })
            _ = try client.applyOob(change.code)
            let wayBack = try #require(try client.mails().first { $0.message.requestType == .recoverEmail })
            _ = try client.applyOob(wayBack.code)
            let account = try client.get(user.uid)
            #expect(account.secondFactors.map(\.factorID) == [user.factorID] && account.recoveryCodeCount == 0)
        }
    }

    @Test func `An import that replaces a user keeps its factors`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let row = ImportUser(uid: user.uid, email: user.email, emailVerified: true)
            let answer = try ImportTests.importing(client.client, [row], onConflict: .replace)
            #expect(answer.replacedCount == 1)
            let account = try client.get(user.uid)
            #expect(account.secondFactors.map(\.factorID) == [user.factorID])
            #expect(account.recoveryCodeCount == 10)
        }
    }

    @Test func `An enrollment credential is over once the user has a factor`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try client.verifiedUser("ada@example.com")
            try client.setFactors(.mandatory)
            let thief = failure { _ = try client.signIn("ada@example.com") }.metadata("enrollment_credential") ?? ""
            #expect(try client.lookup(Text(thief)).email == "ada@example.com")
            _ = try client.enrollApp("ada@example.com", tokens.idToken)
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(Text(thief)) }
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.startApp(Text(thief)) }
            expectRefusal("INVALID_ID_TOKEN") {
                try client.sendOob(.verifyAndChangeEmail, newEmail: "thief@example.com", idToken: Text(thief))
            }
        }
    }

    @Test func `A factor that is taken back takes the recovery codes with it`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            var user = try client.appUser()
            let phone = try client.enrollPhone(Self.number, user.tokens.idToken)
            user.tokens = try #require(phone.tokens)
            let renewed: AccountsRenewRecoveryCodesResponse = try client.client.call(
                "postern.v1.Accounts/RenewRecoveryCodes",
                AccountsRenewRecoveryCodesRequest(idToken: user.tokens.idToken))
            let mail = try #require(
                try client.mails().first { $0.message.requestType == .revertSecondFactorAddition })
            _ = try client.applyOob(mail.code)
            #expect(try client.get(user.uid).recoveryCodeCount == 0)
            let pending = try client.pending(user)
            expectRefusal("INVALID_CODE") {
                _ = try client.finish(pending, "", .recoveryCode(renewed.recoveryCodes[0]))
            }
        }
    }

    @Test func `Sessions of before the factor end when it is enrolled`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let tokens = try client.verifiedUser("ada@example.com")
            let thief = try #require(try client.signIn("ada@example.com").tokens)
            let user = try client.enrollApp("ada@example.com", tokens.idToken)
            expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(thief.refreshToken) }
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(thief.idToken) }
            expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(tokens.refreshToken) }
            #expect(try client.lookup(user.tokens.idToken).uid == user.uid)
        }
    }

    @Test func `Other sessions end when a factor is withdrawn`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            server.clock.advance(by: .seconds(60))
            let other = try #require(try client.finish(try client.pending(user), user).tokens)
            let withdrawn: AccountsWithdrawMfaEnrollmentResponse = try client.client.call(
                "postern.v1.Accounts/WithdrawMfaEnrollment",
                AccountsWithdrawMfaEnrollmentRequest(idToken: user.tokens.idToken, factorID: user.factorID))
            expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(other.refreshToken) }
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(other.idToken) }
            #expect(try client.lookup(try #require(withdrawn.tokens).idToken).secondFactors.isEmpty)
        }
    }
}
