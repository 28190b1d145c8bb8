import Base
import Identity
import Messages
import Rules
import TestSupport
import Testing

/// An attacker uses a victim's address for an account, and the victim follows the link in the mail without reading
/// it. The second link of the mail, "this was not me", takes the address away again and gives nobody the account.
@Suite struct RejectedEmailAttackTests {
    static let victim: Text = "victim@example.com"
    static let own: Text = "attacker@example.com"
    static let victimInOtherCase: Text = "Victim@Example.com"

    /// How the attacker came to use the victim's address.
    enum Beginning: CaseIterable {
        case signUpWithIt, changeToIt, changeToItFromAProvedAddress, changeToTheSame, changeToTheSameInOtherCase

        var hasFormerAddress: Bool { self == .changeToIt || self == .changeToItFromAProvedAddress }
    }

    /// What happens between the mail and "this was not me".
    enum Between: CaseIterable {
        case nothing, naiveClick, naiveClickAndNewMail, naiveClickAndPasswordChange, naiveClickAndRevocation
        case naiveClickAndMovedOn, newMail, formerAddressTaken
    }

    struct Scene {
        let client: IdentityClient
        let uid: Text
        var tokens: TokenPair
        let mail: IdentityClient.Mail
    }

    @Test(arguments: Beginning.allCases, Between.allCases)
    func thisWasNotMeTakesTheAddressAndNothingElse(_ beginning: Beginning, _ between: Between) async throws {
        try await withServer { server in
            var scene = try Self.begin(try IdentityClient(server), beginning)
            let client = scene.client
            let isVoidByNow = try Self.pass(&scene, between)
            let before = try client.get(scene.uid)
            if isVoidByNow {
                expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(scene.mail.notMeCode) }
                #expect(try client.get(scene.uid) == before)
                return
            }
            let answer = try client.applyOob(scene.mail.notMeCode)
            #expect(answer.requestType == .rejectEmail && Self.isVictims(answer.email))
            let after = try client.get(scene.uid)
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(scene.mail.notMeCode) }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(scene.mail.code) }
            guard Self.isVictims(before.email), before.emailVerified else {
                // The first code was not applied, or the address has left again: only the change and its code are void.
                #expect(after == before)
                _ = try client.refresh(scene.tokens.refreshToken)
                return
            }
            let isFormerFree = beginning.hasFormerAddress && between != .formerAddressTaken
            #expect(after.email == (isFormerFree ? Self.own : ""))
            #expect(after.emailVerified == (isFormerFree && beginning == .changeToItFromAProvedAddress))
            try Self.expectTheAddressIsFree(scene)
            // A user who mistyped an address keeps the account: the password works with the former address.
            if isFormerFree {
                #expect(try client.signIn(Self.own, password: "attacker's password").user?.uid == scene.uid)
            }
        }
    }

    private static func isVictims(_ email: Text) -> Bool { Email(stored: email) == Email(stored: victim) }

    static func expectTheAddressIsFree(_ scene: Scene) throws {
        let client = scene.client
        expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(scene.tokens.idToken) }
        expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(scene.tokens.refreshToken) }
        expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn(victim, password: "attacker's password") }
        let made = try client.signUp(victim, password: "the victim's password")
        #expect(made.user?.uid != scene.uid)
        client.server.clock.advance(by: .minutes(30))
        expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn(victim, password: "attacker's password") }
    }

    static func begin(_ client: IdentityClient, _ beginning: Beginning) throws -> Scene {
        let first = beginning.hasFormerAddress ? own : victim
        let made = try client.signUp(first, password: "attacker's password")
        let tokens = try #require(made.tokens)
        if beginning == .signUpWithIt {
            try client.sendOob(.verifyEmail, idToken: tokens.idToken)
        } else {
            if beginning == .changeToItFromAProvedAddress { try client.verifyEmail(tokens.idToken) }
            let email = beginning == .changeToTheSameInOtherCase ? victimInOtherCase : victim
            try client.sendOob(.verifyAndChangeEmail, newEmail: email, idToken: tokens.idToken)
        }
        let mail = try #require(try client.mails().first)
        #expect(isVictims(mail.message.to))
        return Scene(client: client, uid: try #require(made.user?.uid), tokens: tokens, mail: mail)
    }

    /// Plays what happens in between; returns whether the first mail's codes are void afterwards.
    private static func pass(_ scene: inout Scene, _ between: Between) throws -> Bool {
        let client = scene.client
        func click(_ code: Secret) throws {
            _ = try client.applyOob(code)
            scene.tokens = try #require(try client.signIn(victim, password: "attacker's password").tokens)
        }
        switch between {
        case .nothing: return false
        case .naiveClick: try click(scene.mail.code)
        case .naiveClickAndNewMail:
            try click(scene.mail.code)
            try client.sendOob(.verifyEmail, idToken: scene.tokens.idToken)
            try client.sendOob(
                .verifyAndChangeEmail, newEmail: "attacker2@example.com", idToken: scene.tokens.idToken)
        case .naiveClickAndPasswordChange:
            try click(scene.mail.code)
            let changed: AccountsUpdateResponse = try client.client.call(
                "postern.v1.Accounts/Update",
                AccountsUpdateRequest(
                    idToken: scene.tokens.idToken, updateMask: ProtobufFieldMask(paths: ["password"]),
                    password: Secret("attacker's new password")))
            scene.tokens = try #require(changed.tokens)
            let _: AccountsUpdateResponse = try client.client.call(
                "postern.v1.Accounts/Update",
                AccountsUpdateRequest(
                    idToken: scene.tokens.idToken, updateMask: ProtobufFieldMask(paths: ["password"]),
                    password: Secret("attacker's password")))
        case .naiveClickAndRevocation:
            try click(scene.mail.code)
            let _: UsersRevokeTokensResponse = try client.client.call(
                "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: scene.uid))
        case .naiveClickAndMovedOn:
            try click(scene.mail.code)
            try client.sendOob(
                .verifyAndChangeEmail, newEmail: "attacker2@example.com", idToken: scene.tokens.idToken)
            _ = try client.applyOob(try client.mails()[0].code)
            scene.tokens = try #require(
                try client.signIn("attacker2@example.com", password: "attacker's password").tokens)
        case .newMail:
            let type = scene.mail.message.requestType
            try client.sendOob(type, newEmail: type == .verifyEmail ? "" : victim, idToken: scene.tokens.idToken)
            return true
        case .formerAddressTaken:
            try click(scene.mail.code)
            // If the account always had the victim's address, this sign-up is another account, which does not matter.
            _ = try client.signUp(own, password: "somebody else")
        }
        return false
    }

    // MARK: The code

    @Test func theSecondLinkIsGoodAsLongAsTheFirst() async throws {
        try await withServer { server in
            let scene = try Self.begin(try IdentityClient(server), .signUpWithIt)
            server.clock.advance(by: .seconds(3_598))
            _ = try scene.client.checkOob(scene.mail.notMeCode)
            server.clock.advance(by: .seconds(2))
            expectRefusal("EXPIRED_OOB_CODE") { _ = try scene.client.applyOob(scene.mail.notMeCode) }
        }
    }

    @Test func nobodyCanAskForTheSecondLinkAlone() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try client.signUp(Self.victim).tokens!.idToken
            expectRefusal("MISSING_REQ_TYPE") { try client.sendOob(.rejectEmail, idToken: idToken) }
            expectRefusal("MISSING_REQ_TYPE") {
                let _: UsersGenerateOobLinkResponse = try client.client.call(
                    "postern.v1.Users/GenerateOobLink",
                    UsersGenerateOobLinkRequest(requestType: .rejectEmail, email: Self.victim))
            }
        }
    }

    /// The code of the second link resets no password, signs nobody in and verifies no address.
    @Test func theSecondLinkLetsNobodyIn() async throws {
        try await withServer { server in
            let scene = try Self.begin(try IdentityClient(server), .signUpWithIt)
            try scene.client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            expectRefusal("INVALID_OOB_CODE") {
                _ = try scene.client.resetPassword(scene.mail.notMeCode, "another horse")
            }
            expectRefusal("INVALID_OOB_CODE") {
                _ = try scene.client.signIn(Self.victim, link: scene.mail.notMeCode)
            }
            #expect(try !scene.client.get(scene.uid).emailVerified)
        }
    }

    /// Looking at the codes, as a mail scanner that opens every link makes a page do, changes nothing.
    @Test func lookingChangesNothingAndShowsWhatTheAddressIsAboutToJoin() async throws {
        try await withServer { server in
            let scene = try Self.begin(try IdentityClient(server), .changeToIt)
            let client = scene.client
            try client.update(scene.uid, ["display_name"]) { $0.displayName = "Mallory" }
            _ = try client.signIn(Self.own, password: "attacker's password")
            let before = try client.get(scene.uid)
            for (code, type) in [
                (scene.mail.code, OobRequestType.verifyAndChangeEmail), (scene.mail.notMeCode, .rejectEmail),
            ] {
                for _ in 0..<3 {
                    let shown = try client.checkOob(code)
                    #expect(shown.requestType == type && shown.email == Self.own && shown.newEmail == Self.victim)
                    let account = try #require(shown.account)
                    #expect(account.displayName == "Mallory" && account.createdAtMicros == before.createdAtMicros)
                    #expect(account.liveSessionCount == 2 && account.signInMethods == ["password"])
                }
            }
            #expect(try client.get(scene.uid) == before)
            // Codes of the other kinds tell nothing about the account.
            try client.sendOob(.passwordReset, email: Self.own)
            #expect(try client.checkOob(try client.mails()[0].code).account == nil)
        }
    }

    @Test func aPasswordLeftWithoutAnAddressIsReplacedByTheNextOne() async throws {
        try await withServer { server in
            let scene = try Self.begin(try IdentityClient(server), .signUpWithIt)
            let client = scene.client
            _ = try client.applyOob(scene.mail.code)
            _ = try client.applyOob(scene.mail.notMeCode)
            let left = try client.get(scene.uid)
            #expect(left.email.isEmpty && left.providers.isEmpty)
            // An admin signs the user in by a custom token; the user takes an email and a password of its own.
            let idToken = try #require(try client.signIn(customTokenFor: scene.uid).tokens).idToken
            _ = try client.signUp(Self.own, password: "a new password", linkingTo: idToken)
            #expect(try client.signIn(Self.own, password: "a new password").user?.uid == scene.uid)
            expectRefusal("INVALID_LOGIN_CREDENTIALS") {
                _ = try client.signIn(Self.own, password: "attacker's password")
            }
        }
    }

    // MARK: The mail

    @Test func everyMailCarriesItWithOrWithoutATemplate() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try client.signUp(Self.victim).tokens!.idToken
            func mail() throws -> OutboxContents {
                try client.sendOob(.verifyEmail, idToken: idToken)
                return try client.mails()[0].contents
            }
            let plain = try mail()
            #expect(plain.notMeLink.string.contains("mode=rejectEmail&oobCode="))
            #expect(plain.notMeLink != plain.link && plain.text.string.contains(plain.notMeLink.string))
            func template(_ text: Text, _ html: Text) throws {
                try client.configureMail(["templates"]) {
                    $0.templates = [EmailTemplate(requestType: .verifyEmail, subject: "s", text: text, html: html)]
                }
            }
            try template("%LINK% not me: %NOT_ME_LINK%.", "<a href='%LINK%'>me</a><a href='%NOT_ME_LINK%'>not me</a>")
            let own = try mail()
            #expect(own.text.string == "\(own.link) not me: \(own.notMeLink).")
            let escaped = own.notMeLink.string.split(separator: "&").joined(separator: "&amp;")
            #expect(own.html.string.hasSuffix("<a href='\(escaped)'>not me</a>"))
            // The second link is appended to a template that lacks it.
            try template("%LINK%", "<p>%LINK%</p>")
            let appended = try mail()
            #expect(appended.text.string.hasPrefix("\(appended.link)\n\nWas this not you?"))
            #expect(appended.text.string.contains(appended.notMeLink.string))
            #expect(appended.html.string.contains("oobCode=") && appended.html.string.contains("mode=rejectEmail"))
            expectRefusal("INVALID_TEMPLATE") {
                try client.configureMail(["templates"]) {
                    $0.templates = [
                        EmailTemplate(
                            requestType: .passwordReset, subject: "s", text: "%LINK%%NOT_ME_LINK%", html: "%LINK%")
                    ]
                }
            }
        }
    }

    @Test func anAdminIsGivenBothLinks() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.signUp(Self.victim).user!.uid
            let made = try client.generateVerification(of: Self.victim)
            _ = try client.applyOob(made.oobCode)
            _ = try client.applyOob(made.notMeCode)
            #expect(try client.get(uid).email.isEmpty)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            let signIn: UsersGenerateOobLinkResponse = try client.client.call(
                "postern.v1.Users/GenerateOobLink",
                UsersGenerateOobLinkRequest(requestType: .emailSignin, email: Self.victim))
            #expect(signIn.notMeLink.isEmpty)
        }
    }
}
