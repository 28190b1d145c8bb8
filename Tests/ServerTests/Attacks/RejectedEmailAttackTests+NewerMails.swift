import Base
import Identity
import Messages
import TestSupport
import Testing

// The victim has followed a link without a thought, and uses the second link of another mail than that one.

extension RejectedEmailAttackTests {
    /// A mail that the attacker asks for when the account has the victim's address already, and has proved it.
    enum NewerMail: CaseIterable {
        case verification, changeToTheSame, changeToTheSameInOtherCase

        func send(_ scene: Scene) throws -> IdentityClient.Mail {
            let (client, idToken) = (scene.client, scene.tokens.idToken)
            switch self {
            case .verification: try client.sendOob(.verifyEmail, idToken: idToken)
            case .changeToTheSame: try client.sendOob(.verifyAndChangeEmail, newEmail: victim, idToken: idToken)
            case .changeToTheSameInOtherCase:
                try client.sendOob(.verifyAndChangeEmail, newEmail: victimInOtherCase, idToken: idToken)
            }
            return try #require(try client.mails().first)
        }
    }

    private static func signIn(_ client: IdentityClient, _ email: Text = victim) throws -> TokenPair {
        try #require(try client.signIn(email, password: "attacker's password").tokens)
    }

    @Test(arguments: [Beginning.signUpWithIt, .changeToIt, .changeToItFromAProvedAddress], NewerMail.allCases)
    func `The second link of a newer mail takes the address away`(
        _ beginning: Beginning, _ newer: NewerMail
    ) async throws {
        for isFollowed in [false, true] {
            try await withServer { server in
                var scene = try Self.begin(try IdentityClient(server), beginning)
                let client = scene.client
                _ = try client.applyOob(scene.mail.code)
                let wayBack = try client.mails().first { $0.message.requestType == .recoverEmail }
                scene.tokens = try Self.signIn(client)
                let newest = try newer.send(scene)
                if isFollowed {
                    _ = try client.applyOob(newest.code)
                    scene.tokens = try Self.signIn(client)
                }
                _ = try client.applyOob(newest.notMeCode)
                let after = try client.get(scene.uid)
                #expect(after.email.isEmpty && !after.emailVerified, "followed: \(isFollowed)")
                for code in [scene.mail.notMeCode, newest.code] {
                    expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(code) }
                }
                try Self.expectTheAddressIsFree(scene)
                // A user who mistyped an address still has the way back to a former address that was proved.
                #expect((wayBack != nil) == (beginning == .changeToItFromAProvedAddress))
                if let wayBack { #expect(try client.applyOob(wayBack.code).email == Self.own) }
            }
        }
    }

    /// The link puts no former address back: that would be the one which the account left before.
    @Test func `An address that left the account and came back is taken away by the first mail`() async throws {
        try await withServer { server in
            var scene = try Self.begin(try IdentityClient(server), .changeToIt)
            let client = scene.client
            _ = try client.applyOob(scene.mail.code)
            var tokens = try Self.signIn(client)
            for email in ["attacker2@example.com", Self.victim] as [Text] {
                try client.sendOob(.verifyAndChangeEmail, newEmail: email, idToken: tokens.idToken)
                _ = try client.applyOob(try EmailRecoveryTests.newestCode(client, .verifyAndChangeEmail))
                tokens = try Self.signIn(client, email)
            }
            scene.tokens = tokens
            _ = try client.applyOob(scene.mail.notMeCode)
            #expect(try client.get(scene.uid).email.isEmpty)
            try Self.expectTheAddressIsFree(scene)
        }
    }

    /// Otherwise a mail from before could take the address from its owner.
    @Test func `The links of earlier mails are void once the owner has taken the account over`() async throws {
        try await withServer { server in
            let scene = try Self.begin(try IdentityClient(server), .signUpWithIt)
            try scene.client.sendOob(.passwordReset, email: Self.victim)
            let code = try EmailRecoveryTests.newestCode(scene.client, .passwordReset)
            _ = try scene.client.resetPassword(code, "the victim's password")
            expectRefusal("INVALID_OOB_CODE") { _ = try scene.client.applyOob(scene.mail.notMeCode) }
            let account = try scene.client.get(scene.uid)
            #expect(account.email == Self.victim && account.emailVerified)
        }
    }
}
