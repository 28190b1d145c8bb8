import Base
import Messages
import TestSupport
import Testing

/// An attacker was in an account without a second factor, enrolled one, and moved the email. Its owner gets both back.
@Suite struct FactorRecoveryAttackTests {
    private static let (owner, thief): (Text, Text) = ("ada@example.com", "thief@example.com")

    private static func mail(_ client: IdentityClient, _ type: OobRequestType) throws -> Secret {
        try #require(try client.mails().first { $0.message.requestType == type }).code
    }

    /// The thief enrolled before the email moved, so that the owner was told of both.
    @Test(arguments: [
        [OobRequestType.recoverEmail, .revertSecondFactorAddition], [.revertSecondFactorAddition, .recoverEmail],
    ])
    func `The links that take email and factor back work in any order`(order: [OobRequestType]) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let tokens = try client.verifiedUser(Self.owner)
            let user = try client.enrollApp(Self.owner, tokens.idToken)
            server.clock.advance(by: .seconds(1))
            try client.sendOob(.verifyAndChangeEmail, newEmail: Self.thief, idToken: user.tokens.idToken)
            _ = try client.applyOob(try Self.mail(client, .verifyAndChangeEmail))
            let codes = try order.map { try Self.mail(client, $0) }
            for code in codes { _ = try client.applyOob(code) }
            let account = try client.get(user.uid)
            #expect(account.email == Self.owner && account.secondFactors.isEmpty && account.recoveryCodeCount == 0)
            // Whichever link came first removed the recovery codes.
            let removed: Text = order.first == .recoverEmail ? "password,recovery_codes" : "password"
            #expect(try Self.details(client, user.uid, .emailRecovered) == [removed])
            #expect(try Self.details(client, user.uid, .secondFactorReverted).count == 1)
            #expect(try Self.details(client, user.uid, .secondFactorRemoved).isEmpty)
        }
    }

    /// The details of the user's events of a kind, the newest first.
    private static func details(_ client: IdentityClient, _ uid: Text, _ kind: EventKind) throws -> [Text] {
        let page: AuditListEventsResponse = try client.client.call(
            "postern.v1.Audit/ListEvents",
            AuditListEventsRequest(pageSize: 1_000, filter: EventFilter(uid: uid, kinds: [kind])))
        return page.events.map(\.detail)
    }

    /// The thief moved the email away, enrolled where nobody was told, and linked a number.
    @Test func `The events of a recovered email say what was removed`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            try client.setFactors(.enabled)
            let token = try Self.move(client, to: Self.thief, try client.verifiedUser(Self.owner).idToken)
            let code = try Self.mail(client, .recoverEmail)
            try client.sendOob(.verifyEmail, idToken: token)
            _ = try client.applyOob(try Self.mail(client, .verifyEmail))
            let user = try client.enrollApp(Self.thief, token)
            try client.update(user.uid, ["phone_number"]) { $0.phoneNumber = "+14155550142" }
            _ = try client.applyOob(code)
            #expect(try Self.details(client, user.uid, .emailRecovered) == ["password,phone,recovery_codes"])
            #expect(
                try Self.details(client, user.uid, .secondFactorRemoved) == [Text("totp \(user.factorID.string)")])
        }
    }

    /// The thief moved the email away, enrolled where nobody was told, and moved it back without a proof. The owner
    /// proves the email by another way than the one that the mail offered.
    @Test(arguments: ["reset", "link", "provider"])
    func `Whoever proves a former email is rid of the factors since`(way: String) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            try client.setFactors(.enabled)
            var token = try client.verifiedUser(Self.owner).idToken
            token = try Self.move(client, to: Self.thief, token)
            try client.sendOob(.verifyEmail, idToken: token)
            _ = try client.applyOob(try Self.mail(client, .verifyEmail))
            let user = try client.enrollApp(Self.thief, token)
            _ = try Self.move(client, to: Self.owner, user.tokens.idToken)
            switch way {
            case "reset":
                try client.sendOob(.passwordReset, email: Self.owner)
                _ = try client.resetPassword(try Self.mail(client, .passwordReset), "my own password")
                _ = try client.signIn(Self.owner, password: "my own password")
            case "link":
                try client.sendOob(.emailSignin, email: Self.owner)
                _ = try client.signIn(Self.owner, link: try Self.mail(client, .emailSignin))
            default: _ = try client.signIn(.google(email: Self.owner))
            }
            let account = try client.get(user.uid)
            #expect(account.email == Self.owner && account.emailVerified)
            #expect(account.secondFactors.isEmpty && account.recoveryCodeCount == 0)
            let kind: EventKind = way == "reset" ? .passwordReset : .credentialsRemoved
            #expect(try Self.details(client, user.uid, kind) == ["password,recovery_codes"])
            #expect(
                try Self.details(client, user.uid, .secondFactorRemoved) == [Text("totp \(user.factorID.string)")])
        }
    }

    /// The owner's factor is the earlier one, although its node's clock says that it is the later one.
    @Test func `Getting the email back leaves a factor of a node whose clock is ahead`() async throws {
        let clocks = (ManualClock(), ManualClock(startingAt: ManualClock().clock.now() - .seconds(2)))
        try await withTwoNodes(clock: clocks.0, secondClock: clocks.1) { nodes in
            let (ahead, behind) = (try IdentityClient(nodes.first), try IdentityClient(nodes.second))
            try ahead.setFactors(.enabled)
            let tokens = try ahead.verifiedUser(Self.owner)
            let enrolled = try ahead.enrollPhone("+14155550177", tokens.idToken)
            let idToken = try #require(enrolled.tokens).idToken
            try behind.sendOob(.verifyAndChangeEmail, newEmail: "ada@elsewhere.example", idToken: idToken)
            _ = try behind.applyOob(try Self.mail(behind, .verifyAndChangeEmail))
            _ = try ahead.applyOob(try Self.mail(behind, .recoverEmail))
            let account = try ahead.get(try #require(enrolled.user).uid)
            #expect(account.email == Self.owner)
            #expect(account.secondFactors.map(\.factorID) == [enrolled.factorID])
        }
    }

    private static func move(_ client: IdentityClient, to email: Text, _ idToken: Text) throws -> Text {
        client.server.clock.advance(by: .seconds(1))
        let moved: AccountsUpdateResponse = try client.client.call(
            "postern.v1.Accounts/Update",
            AccountsUpdateRequest(
                idToken: idToken, updateMask: ProtobufFieldMask(paths: ["email"]), email: email))
        return try #require(moved.tokens).idToken
    }

    /// An admin takes away the identity that a thief signed in with. The account has no way to sign in then, but its
    /// session is not that of an anonymous user.
    @Test func `A session that lost its identity needs a recent login as before`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let signedIn = try client.signIn(.google(email: Self.owner))
            let uid = try #require(signedIn.user).uid
            let _: UsersUnlinkResponse = try client.client.call(
                "postern.v1.Users/Unlink", UsersUnlinkRequest(uid: uid, providerID: "google.com"))
            server.clock.advance(by: .minutes(30))
            let token = try #require(signedIn.tokens).idToken
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") { _ = try client.signUp(Self.owner, linkingTo: token) }
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") {
                let _: AccountsDeleteResponse = try client.client.call(
                    "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: token))
            }
        }
    }
}
