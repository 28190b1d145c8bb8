import Base
import Messages
import TestSupport
import Testing

/// An owner who proves a former email has an older second factor, so that the sign-in waits for it. Until the sign-in
/// is finished, nothing of the account changes.
@Suite struct FormerEmailProofTests {
    private static let (owner, thief): (Text, Text) = ("ada@example.com", "thief@example.com")
    private static let number: Text = "+14155550177"

    private struct Scene {
        let client: IdentityClient
        /// The owner's factor.
        let app: AppUser
        /// The recovery codes that the thief renewed.
        let recoveryCodes: [Secret]
        let phoneID: Text
        /// The link in the mail that told the owner of the change.
        let wayBack: Secret

        /// Begins a sign-in that proves the former email.
        func begin(_ way: String) throws -> Failure {
            guard way == "link" else { return failure { _ = try client.signIn(.google(email: owner)) } }
            try client.sendOob(.emailSignin, email: owner)
            let code = try mail(client, .emailSignin)
            return failure { _ = try client.signIn(owner, link: code) }
        }

        func pending(_ way: String) throws -> Secret {
            let refused = try begin(way)
            guard refused.reason == "SECOND_FACTOR_REQUIRED" else { throw refused }
            return Secret(try #require(refused.metadata("pending_credential")))
        }
    }

    private static func mail(_ client: IdentityClient, _ type: OobRequestType) throws -> Secret {
        try #require(try client.mails().first { $0.message.requestType == type }).code
    }

    private static func move(_ client: IdentityClient, to email: Text, _ idToken: Text) throws -> Text {
        client.server.clock.advance(by: .seconds(1))
        let moved: AccountsUpdateResponse = try client.client.call(
            "postern.v1.Accounts/Update",
            AccountsUpdateRequest(
                idToken: idToken, updateMask: ProtobufFieldMask(paths: ["email"]), email: email))
        return try #require(moved.tokens).idToken
    }

    /// The thief has the owner's session. The thief moves the email away, adds a phone where no mail tells the owner,
    /// renews the recovery codes, and moves the email back without a proof.
    private static func run(_ body: (Scene) throws -> Void) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            try client.setFactors(.enabled)
            let app = try client.appUser(owner)
            var token = try move(client, to: thief, app.tokens.idToken)
            let wayBack = try mail(client, .recoverEmail)
            try client.sendOob(.verifyEmail, idToken: token)
            _ = try client.applyOob(try mail(client, .verifyEmail))
            let enrolled = try client.enrollPhone(number, token)
            token = try #require(enrolled.tokens).idToken
            let renewed: AccountsRenewRecoveryCodesResponse = try client.client.call(
                "postern.v1.Accounts/RenewRecoveryCodes", AccountsRenewRecoveryCodesRequest(idToken: token))
            _ = try move(client, to: owner, token)
            server.clock.advance(by: .minutes(1))
            try body(
                Scene(
                    client: client, app: app, recoveryCodes: renewed.recoveryCodes, phoneID: enrolled.factorID,
                    wayBack: wayBack))
        }
    }

    @Test(arguments: ["link", "provider"])
    func `A sign-in that is never finished leaves the way back and every factor`(way: String) async throws {
        try await Self.run { scene in
            _ = try scene.pending(way)
            let account = try scene.client.get(scene.app.uid)
            #expect(account.secondFactors.map(\.factorID) == [scene.app.factorID, scene.phoneID])
            #expect(account.recoveryCodeCount == 10 && !account.emailVerified)
            // The factors that the account lists can be shown.
            _ = try scene.client.finish(try scene.client.pending(scene.app), scene.app)
            scene.client.server.clock.advance(by: .minutes(1))
            _ = try scene.client.finish(
                try scene.client.pending(scene.app), "", .recoveryCode(scene.recoveryCodes[0]))
            _ = try scene.client.applyOob(scene.wayBack)
            let recovered = try scene.client.get(scene.app.uid)
            #expect(recovered.secondFactors.map(\.factorID) == [scene.app.factorID])
            #expect(recovered.emailVerified && recovered.recoveryCodeCount == 0)
        }
    }

    @Test(arguments: ["link", "provider"])
    func `Finishing it takes the account back`(way: String) async throws {
        try await Self.run { scene in
            let done = try scene.client.finish(try scene.pending(way), scene.app)
            #expect(done.user?.uid == scene.app.uid)
            let account = try scene.client.get(scene.app.uid)
            #expect(account.email == Self.owner && account.emailVerified)
            #expect(account.secondFactors.map(\.factorID) == [scene.app.factorID])
            #expect(account.recoveryCodeCount == 0)
            expectRefusal("INVALID_OOB_CODE") { _ = try scene.client.applyOob(scene.wayBack) }
        }
    }

    @Test(arguments: ["link", "provider"])
    func `Only a factor that the account keeps finishes it`(way: String) async throws {
        try await Self.run { scene in
            let refused = try scene.begin(way)
            let hints = refused.metadata("second_factors") ?? ""
            #expect(hints.contains(scene.app.factorID.string) && !hints.contains(scene.phoneID.string))
            let pending = Secret(try #require(refused.metadata("pending_credential")))
            expectRefusal("MFA_ENROLLMENT_NOT_FOUND") { _ = try scene.client.startSMS(pending, scene.phoneID) }
            expectRefusal("INVALID_CODE") {
                _ = try scene.client.finish(pending, "", .recoveryCode(scene.recoveryCodes[0]))
            }
            expectRefusal("INVALID_CODE") {
                _ = try scene.client.finish(pending, scene.app, scene.app.wrongCode(scene.client.server))
            }
            // Refused codes changed nothing.
            #expect(try scene.client.get(scene.app.uid).secondFactors.count == 2)
            _ = try scene.client.checkOob(scene.wayBack)
            _ = try scene.client.finish(pending, scene.app)
            #expect(try scene.client.get(scene.app.uid).secondFactors.count == 1)
        }
    }

    /// The way back expires while the sign-in waits: then the email proves nothing about the account any more.
    @Test(arguments: ["link", "provider"])
    func `What the proof means is decided when the sign-in is finished`(way: String) async throws {
        try await Self.run { scene in
            let server = scene.client.server
            let week = Duration.hours(24 * 7)
            server.clock.advance(by: week - .minutes(3))
            let pending = try scene.pending(way)
            server.clock.advance(by: .minutes(4))
            expectRefusal("ACCOUNT_CHANGED") { _ = try scene.client.finish(pending, scene.app) }
            let account = try scene.client.get(scene.app.uid)
            #expect(account.secondFactors.count == 2 && !account.emailVerified)
        }
    }
}
