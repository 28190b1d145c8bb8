import Base
import Crypto
import Identity
import Messages
import Rules
import TestSupport
import Testing

/// Codes and pending sign-ins that a backup holds. They may have been used before the backup was restored.
@Suite struct RestoredCodesTests {
    private static let number = SecondFactorSignInTests.number
    private static let moved: Text = "moved@example.com"

    /// What the mailboxes, the phone and the programs of the users hold when the backup is taken.
    private struct Held {
        let reset: Secret
        let link: Secret
        let verification: Secret
        let phone: IdentityClient.PhoneCode
        let app: AppUser
        let pending: Secret
        let recovery: Secret
        let notMe: Secret

        /// Uses all but the ways back. `refused`: expects that each is refused.
        func use(_ client: IdentityClient, refused: Bool) throws {
            let uses: [(reason: String, use: () throws -> Void)] = [
                ("INVALID_OOB_CODE", { _ = try client.resetPassword(reset, "another horse") }),
                ("INVALID_OOB_CODE", { _ = try client.signIn("cid@example.com", link: link) }),
                ("INVALID_OOB_CODE", { _ = try client.applyOob(verification) }),
                ("INVALID_SESSION_INFO", { _ = try client.signIn(phone) }),
                ("INVALID_MFA_PENDING_CREDENTIAL", { _ = try client.finish(pending, app) }),
            ]
            for (reason, use) in uses {
                if refused { expectRefusal(reason) { try use() } } else { try use() }
            }
        }
    }

    private static func hold(_ client: IdentityClient) throws -> Held {
        try client.setFactors(.enabled)
        try client.allowPhones()
        try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
        let app = try client.appUser("app@example.com")
        _ = try EmailRecoveryTests.verifiedAccount(client, "owner@example.com")
        let idToken = try #require(try client.signIn("owner@example.com").tokens).idToken
        try client.sendOob(.verifyAndChangeEmail, newEmail: moved, idToken: idToken)
        let change = try #require(try client.mails().first { $0.message.requestType == .verifyAndChangeEmail })
        _ = try client.applyOob(change.code)
        _ = try client.verifiedUser("bea@example.com")
        try client.sendOob(.passwordReset, email: "bea@example.com")
        try client.sendOob(.emailSignin, email: "cid@example.com")
        let dan = try #require(try client.signUp("dan@example.com").tokens)
        try client.sendOob(.verifyEmail, idToken: dan.idToken)
        let reset = try EmailRecoveryTests.newestCode(client, .passwordReset)
        let link = try EmailRecoveryTests.newestCode(client, .emailSignin)
        let verification = try EmailRecoveryTests.newestCode(client, .verifyEmail)
        let recovery = try EmailRecoveryTests.newestCode(client, .recoverEmail)
        let phone = try client.code(to: number)
        let pending = try client.pending(app)
        return Held(
            reset: reset, link: link, verification: verification, phone: phone, app: app, pending: pending,
            recovery: recovery, notMe: change.notMeCode)
    }

    @Test func `No code of a backup is good again, but an owner's ways back are`() async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            let data = directory + "/data"
            let made: (Held, Secret) = try await withServer(directory: data, clock: clock, masterKey: masterKey) {
                server in
                let client = try IdentityClient(server)
                let held = try Self.hold(client)
                clock.advance(by: .seconds(1))
                writeFile(directory + "/backup", try BackupTests.take(server))
                try held.use(client, refused: false)
                #expect(try client.applyOob(held.recovery).email == "owner@example.com")
                return (held, server.adminKey)
            }
            BackupTests.write(masterKey, to: data + "/master-key")
            let restored = try BackupTests.posternd(data, ["--restore-backup", directory + "/backup"])
            #expect(restored.status == 0, "\(restored.said)")
            try await withServer(directory: data, clock: clock, masterKey: masterKey, adminKey: made.1) { server in
                let client = try IdentityClient(server)
                try made.0.use(client, refused: true)
                // A check of a link is no way to learn more.
                expectRefusal("INVALID_OOB_CODE") { _ = try client.checkOob(made.0.reset) }
                // The restore has brought back the change that these codes undo.
                #expect(try client.find(Self.moved).emailVerified)
                #expect(try client.checkOob(made.0.notMe).requestType == .rejectEmail)
                #expect(try client.applyOob(made.0.recovery).email == "owner@example.com")
                // The clock of the restoring program may be ahead of the test's.
                clock.advance(by: TimeKeeping.slack + .seconds(1))
                _ = try client.signIn(phone: Self.number)
                try client.sendOob(.passwordReset, email: "bea@example.com")
                let reset = try EmailRecoveryTests.newestCode(client, .passwordReset)
                _ = try client.resetPassword(reset, "a third horse")
                _ = try client.finish(try client.pending(made.0.app), made.0.app)
            }
        }
    }
}
