import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// A thief got into an account. Its owner gets it back, and what the thief prepared is void then.
@Suite struct EmailRecoveryTests {
    private static let owner: Text = "owner@example.com"

    /// Makes an account and verifies its email. A moment passes.
    static func verifiedAccount(_ client: IdentityClient, _ email: Text = owner) throws -> TokenPair {
        let made = try client.signUp(email)
        try client.sendOob(.verifyEmail, idToken: made.tokens!.idToken)
        _ = try client.applyOob(try newestCode(client))
        return made.tokens!
    }

    static func newestCode(_ client: IdentityClient, _ type: OobRequestType? = nil) throws -> Secret {
        let mail = try client.mails().first { type == nil || $0.message.requestType == type }
        return try #require(mail).code
    }

    /// Moves the account to an address whose mailbox its user has; returns the code that takes it back.
    private static func change(
        _ client: IdentityClient, from email: Text, to newEmail: Text
    ) throws -> Secret {
        let idToken = try client.signIn(email).tokens!.idToken
        try client.sendOob(.verifyAndChangeEmail, newEmail: newEmail, idToken: idToken)
        _ = try client.applyOob(try newestCode(client, .verifyAndChangeEmail))
        let recovery = try #require(try client.mails().first { $0.message.requestType == .recoverEmail })
        #expect(recovery.message.to == email)
        return recovery.code
    }

    @Test func aThiefWhoRecoversAnAddressOfItsOwnDoesNotVoidTheOwnersWayBack() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try Self.verifiedAccount(client)
            let ownersCode = try Self.change(client, from: Self.owner, to: "thief1@example.com")
            let thiefsCode = try Self.change(client, from: "thief1@example.com", to: "thief2@example.com")
            #expect(try client.applyOob(thiefsCode).email == "thief1@example.com")
            #expect(try client.applyOob(ownersCode).email == Self.owner)
            // After that the thief's code does not work.
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(thiefsCode) }
        }
    }

    @Test func whoRecoversFirstVoidsWhatCameLater() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try Self.verifiedAccount(client)
            let ownersCode = try Self.change(client, from: Self.owner, to: "thief1@example.com")
            let thiefsCode = try Self.change(client, from: "thief1@example.com", to: "thief2@example.com")
            #expect(try client.applyOob(ownersCode).email == Self.owner)
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(thiefsCode) }
        }
    }

    /// A write that throws after a change has the writes of others run again.
    @Test func anAddressThatAnotherAccountProvedIsRefusedBeforeAnythingChanges() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.lookup(try Self.verifiedAccount(client).idToken).uid
            let code = try Self.change(client, from: Self.owner, to: "second@example.com")
            let other = try client.lookup(try Self.verifiedAccount(client).idToken).uid
            let rerunsBefore = try server.project.store.statistics().reruns
            expectRefusal("EMAIL_EXISTS") { _ = try client.applyOob(code) }
            #expect(try server.project.store.statistics().reruns == rerunsBefore)
            #expect(try client.get(uid).email == "second@example.com")
            #expect(try client.get(other).email == Self.owner)
            // The code is not used up.
            let _: UsersDeleteResponse = try client.client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: other))
            #expect(try client.applyOob(code).email == Self.owner)
            #expect(try client.get(uid).email == Self.owner)
        }
    }

    /// Without enumeration protection an account may be moved to an unverified address. A recovery code for that
    /// address would give the account to whoever has the mailbox. The owner of the address loses nothing without the
    /// code, for the account was never theirs.
    @Test func anAddressNobodyProvedIsSentNoWayBack() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            var idToken = try Self.verifiedAccount(client, "evil@example.com").idToken
            for email in ["victim@example.com", "elsewhere@example.com"] as [Text] {
                idToken = try Self.move(client, to: email, idToken)
            }
            let recoveries = try client.mails().filter { $0.message.requestType == .recoverEmail }
            #expect(recoveries.map(\.message.to) == ["evil@example.com"])
        }
    }

    /// The victim proves an address to which somebody moved an account. The victim gets a new account, and the other
    /// one goes back to its former address.
    @Test func whoProvesAnAddressThatAnotherAccountWasMovedToGetsTheAddressAndNotTheAccount() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            let made = try Self.verifiedAccount(client, "evil@example.com")
            let uid = try client.lookup(made.idToken).uid
            let moved = try Self.move(client, to: "victim@example.com", made.idToken)
            try client.sendOob(.passwordReset, email: "victim@example.com")
            _ = try client.resetPassword(try Self.newestCode(client, .passwordReset), "the victim's password")
            let victim = try #require(try client.signIn("victim@example.com", password: "the victim's password").user)
            #expect(victim.uid != uid && victim.emailVerified)
            let other = try client.get(uid)
            #expect(other.email == "evil@example.com" && other.emailVerified)
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(moved) }
            // The recovery code that was mailed leads to the same address, and leaves the victim's account alone.
            #expect(try client.applyOob(try Self.newestCode(client, .recoverEmail)).email == "evil@example.com")
            #expect(try client.get(victim.uid).email == "victim@example.com")
        }
    }

    @Test func anAccountHasTwentyOpenWaysBackAtMost() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            var idToken = try Self.verifiedAccount(client).idToken
            let uid = try client.lookup(idToken).uid
            for number in 1...20 {
                idToken = try Self.move(client, to: Text("n\(number)@example.com"), idToken)
                try client.update(uid, ["email_verified"]) { $0.emailVerified = true }
            }
            let first = try #require(
                try client.mails().last { $0.message.requestType == .recoverEmail && $0.message.to == Self.owner })
            let refused = failure { _ = try Self.move(client, to: "n21@example.com", idToken) }
            #expect(refused.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
            #expect(try #require(refused.retryAfter) > .hours(24 * 6))
            #expect(server.project.oobDelivery.recoveriesRefused.value == 1)
            // The change was refused and replaced no older code: the owner's code is still good.
            #expect(try client.applyOob(first.code).email == Self.owner)
        }
    }

    /// Changes the email without a proof; returns the session's new ID token.
    static func move(_ client: IdentityClient, to email: Text, _ idToken: Text) throws -> Text {
        client.server.clock.advance(by: .seconds(1))
        let changed: AccountsUpdateResponse = try client.client.call(
            "postern.v1.Accounts/Update",
            AccountsUpdateRequest(idToken: idToken, updateMask: ProtobufFieldMask(paths: ["email"]), email: email))
        return try #require(changed.tokens).idToken
    }

    enum Defence: CaseIterable {
        case passwordReset, passwordChange, revocation, disabling, refreshTokenReuse, signingOutOthers
    }

    @Test(arguments: Defence.allCases)
    func aPendingEmailChangeDoesNotOutliveTheSessionsItWasAskedFrom(_ defence: Defence) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try Self.verifiedAccount(client)
            let uid = try client.lookup(tokens.idToken).uid
            // A thief with a session asks for the change, and keeps the code.
            try client.sendOob(.verifyAndChangeEmail, newEmail: "thief@example.com", idToken: tokens.idToken)
            let code = try Self.newestCode(client, .verifyAndChangeEmail)
            server.clock.advance(by: .seconds(1))
            switch defence {
            case .passwordReset:
                try client.sendOob(.passwordReset, email: Self.owner)
                _ = try client.resetPassword(try Self.newestCode(client, .passwordReset), "another horse")
            case .passwordChange:
                let _: AccountsUpdateResponse = try client.client.call(
                    "postern.v1.Accounts/Update",
                    AccountsUpdateRequest(
                        idToken: tokens.idToken, updateMask: ProtobufFieldMask(paths: ["password"]),
                        password: Secret(Text("another horse").bytes)))
            case .revocation:
                let _: UsersRevokeTokensResponse = try client.client.call(
                    "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid))
            case .disabling: try client.update(uid, ["disabled"]) { $0.disabled = true }
            case .signingOutOthers:
                let idToken = try client.signIn(Self.owner).tokens!.idToken
                let ended: SessionsRevokeResponse = try client.client.call(
                    "postern.v1.Sessions/Revoke", SessionsRevokeRequest(idToken: idToken, target: .allOthers(true)))
                #expect(ended.revokedCount == 1)
            case .refreshTokenReuse:
                _ = try client.refresh(tokens.refreshToken)
                server.clock.advance(by: .seconds(120))
                expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(tokens.refreshToken) }
            }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(code) }
            #expect(try client.get(uid).email == Self.owner)
        }
    }

    @Test func anAdminsChangeOfTheEmailIsNotTakenBackByAnOldLink() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.lookup(try Self.verifiedAccount(client).idToken).uid
            let code = try Self.change(client, from: Self.owner, to: "second@example.com")
            try client.update(uid, ["email"]) { $0.email = "third@example.com" }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(code) }
            #expect(try client.get(uid).email == "third@example.com")
        }
    }

    @Test func anImportThatReplacesTheEmailIsNotTakenBackByAnOldLink() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.lookup(try Self.verifiedAccount(client).idToken).uid
            let code = try Self.change(client, from: Self.owner, to: "second@example.com")
            let answer = try ImportTests.importing(
                client.client, [ImportUser(uid: uid, email: "third@example.com")], onConflict: .replace)
            #expect(answer.replacedCount == 1)
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(code) }
            #expect(try client.get(uid).email == "third@example.com")
        }
    }

    @Test func aDeletedAccountsCodesDoNotReachANewOneOfTheSameUid() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.lookup(try Self.verifiedAccount(client).idToken).uid
            let code = try Self.change(client, from: Self.owner, to: "second@example.com")
            let _: UsersDeleteResponse = try client.client.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
            let _: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: uid, email: "other@example.com"))
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(code) }
            #expect(try client.get(uid).email == "other@example.com")
        }
    }

    @Test func nobodysMailboxIsFloodedByChangingAnEmailToAndFro() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            var idToken = try client.signUp("one@example.com").tokens!.idToken
            let uid = try client.lookup(idToken).uid
            var refused = Failure(.ok, "", "nothing was refused")
            for turn in 0..<30 where refused.reason.isEmpty {
                try client.update(uid, ["email_verified"]) { $0.emailVerified = true }
                let email: Text = turn % 2 == 0 ? "victim@example.com" : "one@example.com"
                refused = failure { idToken = try Self.move(client, to: email, idToken) }
            }
            #expect(refused.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
            let received = try client.mails().map(\.message.to).filter { $0 == "victim@example.com" }
            #expect(received.count == 5)
        }
    }
}
