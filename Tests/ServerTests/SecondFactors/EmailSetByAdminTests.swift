import Base
import Messages
import Reactor
import TestSupport
import Testing

/// An admin gives a user another email, or takes the proof from the email. The person who proves the email then is that
/// user, also if the user has a second factor, or a way back to a former email.
@Suite struct EmailSetByAdminTests {
    private static let (old, new): (Text, Text) = ("ada@example.com", "lovelace@example.com")

    private static func run(_ body: (IdentityClient, AppUser) throws -> Void) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setFactors(.enabled)
            try body(client, try client.appUser(old))
        }
    }

    private static func userCount(_ client: IdentityClient) throws -> Int {
        let page: UsersListResponse = try client.client.call("postern.v1.Users/List", UsersListRequest())
        return page.users.count
    }

    /// Signs in by a proof of an email.
    private static func signIn(_ email: Text, by way: String, _ client: IdentityClient) throws -> User? {
        switch way {
        case "link":
            try client.sendOob(.emailSignin, email: email)
            let code = try EmailRecoveryTests.newestCode(client, .emailSignin)
            return try client.signIn(email, link: code).user
        case "provider": return try client.signIn(.google(email: email)).user
        default:
            try client.sendOob(.passwordReset, email: email)
            let code = try EmailRecoveryTests.newestCode(client, .passwordReset)
            _ = try client.resetPassword(code, "another horse")
            return try client.signIn(email, password: "another horse").user
        }
    }

    /// Proves an email; returns the sign-in, which waits for a second factor.
    private static func prove(_ email: Text, by way: String, _ client: IdentityClient) throws -> Secret {
        try client.pending { _ = try signIn(email, by: way, client) }
    }

    /// The user moves from the old email to the new one, and proves it. Returns the way back, which went to the old
    /// one.
    private static func moveWithProof(_ client: IdentityClient, _ idToken: Text) throws -> Secret {
        try client.sendOob(.verifyAndChangeEmail, newEmail: new, idToken: idToken)
        _ = try client.applyOob(try EmailRecoveryTests.newestCode(client, .verifyAndChangeEmail))
        return try EmailRecoveryTests.newestCode(client, .recoverEmail)
    }

    /// For the former email: the admin takes the proof from it, and leaves it as it is.
    @Test(arguments: ["reset", "link", "provider"], ["lovelace@example.com", "ada@example.com"] as [Text])
    func `Who proves the email enters the account, with its factor`(way: String, email: Text) async throws {
        try await Self.run { client, user in
            if email == Self.old {
                try client.update(user.uid, ["email_verified"]) { $0.emailVerified = false }
            } else {
                try client.update(user.uid, ["email"]) { $0.email = email }
            }
            let done = try client.finish(try Self.prove(email, by: way, client), user)
            #expect(done.user?.uid == user.uid)
            let account = try client.get(user.uid)
            #expect(account.email == email && account.emailVerified)
            #expect(account.secondFactors.map(\.factorID) == [user.factorID])
            #expect(try Self.userCount(client) == 1)
        }
    }

    /// Who takes the proof from the email.
    enum Taker: CaseIterable {
        case update, importing, hook

        func takeProof(from email: Text, of uid: Text, _ client: IdentityClient) throws {
            switch self {
            case .update: try client.update(uid, ["email_verified"]) { $0.emailVerified = false }
            case .importing:
                let row = ImportUser(uid: uid, email: email)
                #expect(try ImportTests.importing(client.client, [row], onConflict: .replace).replacedCount == 1)
            case .hook: try Self.signInUnderAHook(email, client)
            }
        }

        /// Signs in while the tenant has a hook that takes the proof.
        private static func signInUnderAHook(_ email: Text, _ client: IdentityClient) throws {
            let endpoint = FakeHTTPServer { _ in
                let answer = #"{"allow":true,"email_verified":false}"#
                return .response(HTTPResponse(contentType: "application/json", body: [UInt8](answer.utf8)))
            }
            defer { endpoint.close() }
            func set(_ hook: Hook?) throws {
                let _: HookConfigsUpdateResponse = try client.client.call(
                    "postern.v1.HookConfigs/Update",
                    HookConfigsUpdateRequest(
                        config: HookConfig(beforeSignIn: hook, allowPrivateAddresses: true),
                        updateMask: ProtobufFieldMask(paths: ["before_sign_in", "allow_private_addresses"])))
            }
            let secret = Secret([UInt8](repeating: 7, count: 32))
            try set(Hook(webhook: WebhookConfig(url: Text(endpoint.url), signingSecret: secret)))
            _ = try client.signIn(email)
            try set(nil)
        }
    }

    /// The way back stays good: a thief may have moved the account, and must not void it by proving the thief's email.
    @Test(arguments: Taker.allCases, ["reset", "link", "provider"])
    func `Who proves the email enters the account while a way back is open`(taker: Taker, way: String) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            let wayBack = try Self.moveWithProof(
                client, try EmailRecoveryTests.verifiedAccount(client, Self.old).idToken)
            let uid = try client.find(Self.new).uid
            try taker.takeProof(from: Self.new, of: uid, client)
            #expect(try !client.get(uid).emailVerified)
            #expect(try Self.signIn(Self.new, by: way, client)?.uid == uid)
            let account = try client.get(uid)
            #expect(account.email == Self.new && account.emailVerified)
            #expect(try Self.userCount(client) == 1)
            #expect(try client.applyOob(wayBack).email == Self.old)
            #expect(try client.find(Self.old).uid == uid)
        }
    }

    @Test(arguments: ["reset", "link", "provider"])
    func `The same holds for a user with a second factor, who shows it`(way: String) async throws {
        try await Self.run { client, user in
            let wayBack = try Self.moveWithProof(client, user.tokens.idToken)
            try client.update(user.uid, ["email_verified"]) { $0.emailVerified = false }
            let done = try client.finish(try Self.prove(Self.new, by: way, client), user)
            #expect(done.user?.uid == user.uid)
            let account = try client.get(user.uid)
            #expect(account.email == Self.new && account.emailVerified)
            #expect(account.secondFactors.map(\.factorID) == [user.factorID])
            #expect(try client.applyOob(wayBack).email == Self.old)
            #expect(try Self.userCount(client) == 1)
        }
    }

    /// The user moved the account to a victim's email without a proof, and could come back by the way back.
    @Test func `An import of the email that the user typed does not count while a way back is open`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            let idToken = try EmailRecoveryTests.verifiedAccount(client, Self.old).idToken
            let uid = try client.find(Self.old).uid
            _ = try EmailRecoveryTests.move(client, to: "victim@example.com", idToken)
            let row = ImportUser(uid: uid, email: "victim@example.com")
            #expect(try ImportTests.importing(client.client, [row], onConflict: .replace).replacedCount == 1)
            let victim = try #require(try Self.signIn("victim@example.com", by: "link", client))
            #expect(victim.uid != uid)
            let other = try client.get(uid)
            #expect(other.email == Self.old && other.emailVerified)
        }
    }

    @Test func `The same holds for a user of an import whose email is not proved`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let phone = ImportSecondFactor(factor: SecondFactor(kind: .phone, phoneNumber: "+14155550177"))
            let row = ImportUser(uid: "u1", email: Self.old, secondFactors: [phone])
            #expect(try ImportTests.importing(client.client, [row]).createdCount == 1)
            _ = try Self.prove(Self.old, by: "reset", client)
            let account = try client.find(Self.old)
            #expect(account.uid == "u1" && account.emailVerified && account.secondFactors.count == 1)
            #expect(try Self.userCount(client) == 1)
        }
    }

    /// The user typed the email, and had no factor before the import.
    @Test func `The same holds for a user to whom an import gives the first factor`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let uid = try #require(try client.signUp(Self.old).user).uid
            let phone = ImportSecondFactor(factor: SecondFactor(kind: .phone, phoneNumber: "+14155550177"))
            let row = ImportUser(uid: uid, email: Self.old, secondFactors: [phone])
            #expect(try ImportTests.importing(client.client, [row], onConflict: .replace).replacedCount == 1)
            _ = try Self.prove(Self.old, by: "reset", client)
            let account = try client.find(Self.old)
            #expect(account.uid == uid && account.emailVerified && account.secondFactors.count == 1)
            #expect(try Self.userCount(client) == 1)
        }
    }

    /// What an admin said about one address says nothing about the next, which the user only typed.
    @Test func `It ends when the user moves on without a proof`() async throws {
        try await Self.run { client, user in
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            try client.update(user.uid, ["email"]) { $0.email = Self.new }
            let pending = try client.pending { _ = try client.signIn(Self.new) }
            let token = try #require(try client.finish(pending, user).tokens).idToken
            _ = try EmailRecoveryTests.move(client, to: "victim@example.com", token)
            // An admin who writes the same email again has not looked whose it is.
            try client.update(user.uid, ["email"]) { $0.email = "victim@example.com" }
            try client.sendOob(.emailSignin, email: "victim@example.com")
            let code = try EmailRecoveryTests.newestCode(client, .emailSignin)
            let victim = try client.signIn("victim@example.com", link: code)
            #expect(victim.isNewUser && victim.user?.uid != user.uid)
            #expect(try client.get(user.uid).email.isEmpty)
        }
    }

    /// The export says that the user typed the email, so the import does not vouch for it.
    @Test func `An email that the user typed stays another person's after an export and an import`() async throws {
        try await Self.run { client, user in
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            let pending = try client.pending { _ = try client.signIn(Self.old) }
            let token = try #require(try client.finish(pending, user).tokens).idToken
            _ = try EmailRecoveryTests.move(client, to: "victim@example.com", token)
            let exported = try ExportTests.export(
                client.server, UsersExportRequest(includePasswordHashes: true),
                key: try ExportTests.exporter(client.server))
            let _: UsersDeleteResponse = try client.client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: user.uid))
            let answer = try ExportTests.importAll(
                client.server, exported.flatMap(\.users), exported.flatMap(\.hashSpecs))
            #expect(answer.createdCount == 1, "\(answer.rejections)")
            try client.sendOob(.emailSignin, email: "victim@example.com")
            let code = try EmailRecoveryTests.newestCode(client, .emailSignin)
            let victim = try client.signIn("victim@example.com", link: code)
            #expect(victim.isNewUser && victim.user?.uid != user.uid)
            #expect(try client.get(user.uid).email.isEmpty)
        }
    }

    @Test func `What was mailed to the former address is void`() async throws {
        try await Self.run { client, user in
            try client.sendOob(.emailSignin, email: Self.old)
            let link = try EmailRecoveryTests.newestCode(client, .emailSignin)
            try client.sendOob(.passwordReset, email: Self.old)
            let reset = try EmailRecoveryTests.newestCode(client, .passwordReset)
            try client.update(user.uid, ["email"]) { $0.email = Self.new }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.signIn(Self.old, link: link) }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.resetPassword(reset, "another horse") }
            #expect(try Self.userCount(client) == 1)
        }
    }

    @Test func `A sign-in link ends with its account`() async throws {
        try await Self.run { client, user in
            try client.sendOob(.emailSignin, email: Self.old)
            let link = try EmailRecoveryTests.newestCode(client, .emailSignin)
            let _: UsersDeleteResponse = try client.client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: user.uid))
            expectRefusal("INVALID_OOB_CODE") { _ = try client.signIn(Self.old, link: link) }
            #expect(try Self.userCount(client) == 0)
        }
    }
}
