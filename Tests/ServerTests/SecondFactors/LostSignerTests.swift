import Base
import JSON
import Messages
import TestSupport
import Testing

/// Sign-ins that a custom token began and that wait for a second factor, or for enrolling one, while the signer of the
/// token loses the right to sign.
@Suite struct LostSignerTests {
    enum Loss: CaseIterable, Sendable {
        case keyRevoked, accountDisabled, accountDeleted, customTokensTakenAway, boundToAnotherTenant

        func happen(to backEnd: BackEnd) throws {
            switch self {
            case .keyRevoked: try backEnd.revokeKey()
            case .accountDisabled: try backEnd.update(["disabled"]) { $0.disabled = true }
            case .accountDeleted: try backEnd.delete()
            case .customTokensTakenAway: try backEnd.update(["custom_tokens"]) { $0.customTokens = false }
            case .boundToAnotherTenant:
                try backEnd.makeTenant("acme")
                try backEnd.update(["scope"]) { $0.scope = Scope(tenants: .tenantID("acme")) }
            }
        }
    }

    private static let email: Text = "ada@example.com"
    private static let thief: Text = "thief@example.com"

    private static func token(_ backEnd: BackEnd, for uid: Text) -> Text {
        backEnd.token(backEnd.claims.with("uid", JSONValue.string(uid)))
    }

    @Test(arguments: Loss.allCases)
    func `A sign-in and a reauthentication that wait for a factor are over with their signer`(loss: Loss) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser(Self.email)
            let leaked = try BackEnd(server)
            let other = try BackEnd(server, id: "other")
            func signIn(_ backEnd: BackEnd) throws -> Secret {
                try client.pending { _ = try backEnd.signIn(Self.token(backEnd, for: user.uid)) }
            }
            let waiting = try signIn(leaked)
            let others = try signIn(other)
            let proving = try client.pending {
                let token = Secret(Self.token(leaked, for: user.uid).bytes)
                _ = try LinkTests.reauthenticate(client, user.tokens.idToken, .customToken(token))
            }
            try loss.happen(to: leaked)
            for credential in [waiting, proving] {
                let reason = "INVALID_MFA_PENDING_CREDENTIAL"
                expectRefusal(reason) { _ = try client.finish(credential, user) }
                expectRefusal(reason) { _ = try client.startSMS(credential, user.factorID) }
            }
            // The sign-ins of other signers go on, and so do the user's sessions.
            _ = try client.finish(others, user)
            _ = try client.lookup(user.tokens.idToken)
        }
    }

    /// The thief of a key collects enrollment credentials, to enroll factors of its own, or to move the email away,
    /// once the key is revoked.
    @Test(arguments: Loss.allCases)
    func `An enrollment credential is over with its signer, and a change of the email, too`(loss: Loss) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.verifiedUser(Self.email)
            let uid = try client.find(Self.email).uid
            try client.setFactors(.mandatory)
            let backEnd = try BackEnd(server)
            let stopped = failure { _ = try backEnd.signIn(Self.token(backEnd, for: uid)) }
            #expect(stopped.reason == "SECOND_FACTOR_ENROLLMENT_REQUIRED")
            let credential = Text(stopped.metadata("enrollment_credential") ?? "")
            let started = try client.startApp(credential)
            let app = AppUser(
                email: Self.email, uid: uid, factorID: "", secret: IdentityClient.secret(started.totp),
                recoveryCodes: [], tokens: TokenPair())
            try client.sendOob(.verifyAndChangeEmail, newEmail: Self.thief, idToken: credential)
            let mail = try #require(try client.mails().first { $0.message.to == Self.thief })
            try loss.happen(to: backEnd)
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(credential) }
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.startApp(credential) }
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.finalize(started, app.code(server), credential) }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.checkOob(mail.code) }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(mail.code) }
            // Who reads the mailbox can still say "this was not me".
            let rejected = try client.checkOob(mail.notMeCode)
            #expect(rejected.requestType == .rejectEmail)
            let user = try client.get(uid)
            #expect(user.email == Self.email && user.secondFactors.isEmpty)
        }
    }

    /// Nothing but the credential says that the person who asked may have another email.
    @Test func `A change of the email that was asked for with a credential ends with the credential`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.mandatory)
            try client.allowPhones()
            let number = SecondFactorSignInTests.number
            let stopped = failure { _ = try client.signIn(phone: number) }
            let credential = Text(stopped.metadata("enrollment_credential") ?? "")
            let uid = try client.lookup(credential).uid
            try client.sendOob(.verifyAndChangeEmail, newEmail: Self.thief, idToken: credential)
            let mail = try #require(try client.mails().first { $0.message.to == Self.thief })
            // The phone was stolen.
            try client.update(uid, ["phone_number"]) { $0.phoneNumber = "+14155550177" }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(mail.code) }
            #expect(try client.get(uid).email.isEmpty)
        }
    }
}
