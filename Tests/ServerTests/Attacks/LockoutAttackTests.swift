import Base
import Crypto
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// An attacker guesses so much that the owner could be locked out. The attack must not succeed.
@Suite struct LockoutAttackTests {
    private static let email: Text = "ada@example.com"

    /// 10,000 wrong passwords: half of them from 4,000 addresses, half without a known address.
    private static func attack(_ server: TestServer, count: Int = 10_000) throws {
        let botnet = try Guesser(server)
        let nameless = try Guesser(server, isTrusted: false)
        var random = SeededRandom.printed()
        for number in 0..<count {
            if number.isMultiple(of: 100) { server.clock.advance(by: .seconds(random.below(20))) }
            let someone = number.isMultiple(of: 2) ? botnet : nameless
            let address = Text("198.18.\(random.below(16)).\(random.below(250))")
            let reason = someone.tryPassword("x", of: email, from: address).reason
            #expect(reason == wrongCredentials || reason == tooManyAttempts)
        }
    }

    @Test func `10,000 wrong passwords lock out neither a known address, nor a known device, nor who resets`()
        async throws
    {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signUp(Self.email).user).uid
            try client.update(uid, ["email_verified"]) { $0.emailVerified = true }
            let home = try Guesser(server)
            let app = try Guesser(server, isTrusted: false)
            _ = try home.signIn(Self.email, from: "192.0.2.1")
            let device = try app.signIn(Self.email).deviceToken
            try Self.attack(server)
            #expect(app.tryPassword("correct horse", of: Self.email).reason == tooManyAttempts)
            #expect(home.tryPassword("correct horse", of: Self.email, from: "203.0.113.9").reason == tooManyAttempts)

            _ = try home.signIn(Self.email, from: "192.0.2.1")
            _ = try app.signIn(Self.email, deviceToken: device)
            _ = try home.signIn(Self.email, from: "198.18.0.7", deviceToken: device)

            try client.sendOob(.passwordReset, email: Self.email)
            let code = try #require(try client.mails().first).code
            let reset = try client.resetPassword(code, "another horse")
            _ = try app.signIn(Self.email, "another horse")
            try Self.attack(server, count: 1_000)
            #expect(app.tryPassword("another horse", of: Self.email).reason == tooManyAttempts)
            // The device of the password reset is known, and so is the address that the owner used before.
            _ = try app.signIn(Self.email, "another horse", deviceToken: reset.deviceToken)
            _ = try home.signIn(Self.email, "another horse", from: "192.0.2.1")
        }
    }

    /// Every sign-in method, not only the password, makes a device known. A proof of the mailbox ends the waiting.
    @Test func `Who came in by a link waits for nothing after it, and an admin's new password ends the waiting too`()
        async throws
    {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            let uid = try #require(try client.signUp(Self.email).user).uid
            let app = try Guesser(server, isTrusted: false)
            func spend() {
                while app.tryPassword("x", of: Self.email).reason != tooManyAttempts {}
            }
            spend()
            try client.sendOob(.emailSignin, email: Self.email)
            let code = try #require(try client.mails().first).code
            let signedIn = try client.signIn(Self.email, link: code)
            // The address was not verified before, so the link removed the password: this checks only who waits.
            #expect(app.tryPassword("x", of: Self.email).reason == wrongCredentials)
            spend()
            #expect(app.tryPassword("x", of: Self.email, deviceToken: signedIn.deviceToken).reason == wrongCredentials)
            try client.update(uid, ["password"]) { $0.password = Secret("from the help desk") }
            _ = try app.signIn(Self.email, "from the help desk")
        }
    }

    @Test func `Every sign-in answers a token by which its device is known`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp(Self.email)
            let uid = try #require(made.user).uid
            let app = try Guesser(server, isTrusted: false)
            let idToken = try #require(made.tokens).idToken
            let proved: AccountsReauthenticateResponse = try client.client.call(
                "postern.v1.Accounts/Reauthenticate",
                AccountsReauthenticateRequest(
                    idToken: idToken,
                    credential: .password(EmailPasswordCredential(email: Self.email, password: Secret("correct horse")))
                ))
            let custom = try client.signIn(customTokenFor: uid)
            let tokens = [
                made.deviceToken, try app.signIn(Self.email).deviceToken, proved.deviceToken, custom.deviceToken,
            ]
            #expect(Set(tokens).count == 4)
            while app.tryPassword("x", of: Self.email).reason != tooManyAttempts {}
            for token in tokens { _ = try app.signIn(Self.email, deviceToken: token) }
            server.clock.advance(by: .seconds(1))
            let changed: AccountsUpdateResponse = try client.client.call(
                "postern.v1.Accounts/Update",
                AccountsUpdateRequest(
                    idToken: try #require(custom.tokens).idToken, updateMask: ProtobufFieldMask(paths: ["password"]),
                    password: Secret("another horse")))
            while app.tryPassword("x", of: Self.email).reason != tooManyAttempts {}
            for token in tokens {
                #expect(app.tryPassword("x", of: Self.email, deviceToken: token).reason == tooManyAttempts)
            }
            _ = try app.signIn(Self.email, "another horse", deviceToken: changed.deviceToken)
        }
    }

    // MARK: Stolen and forged device tokens

    @Test func `A stolen device token is worth one bucket, and none at another account or tenant`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp(Self.email)
            _ = try client.signUp("eve@example.com")
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "other"))
            let app = try Guesser(server, isTrusted: false)
            let stolen = try app.signIn(Self.email).deviceToken
            // A sign-in renews the token of the same device, which has the same bucket.
            let renewed = try app.signIn(Self.email, deviceToken: stolen).deviceToken
            let reasons = (0..<40).map {
                app.tryPassword("x", of: Self.email, deviceToken: $0.isMultiple(of: 2) ? stolen : renewed).reason
            }
            #expect(reasons.count { $0 == wrongCredentials } == 6)
            // The owner, on another device, is not affected, and neither is a caller without a device token.
            #expect(app.tryPassword("correct horse", of: Self.email).reason == "")

            for (email, tenantID) in [("eve@example.com", ""), (Self.email, "other")] as [(Text, Text)] {
                let guesses = (0..<20).map { _ in
                    app.tryPassword("x", of: email, deviceToken: renewed, tenantID: tenantID).reason
                }
                #expect(guesses.count { $0 == wrongCredentials } == 6)
                #expect(app.tryPassword("x", of: email, tenantID: tenantID).reason == tooManyAttempts)
            }
        }
    }

    @Test func `Device tokens hoarded by a thief are worth nothing after the password was reset`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp(Self.email)
            let thief = try Guesser(server, isTrusted: false)
            let hoard = try Self.hoard(thief, server)
            try client.sendOob(.passwordReset, email: Self.email)
            _ = try client.resetPassword(try #require(try client.mails().first).code, "another horse")
            Self.expectWorthless(hoard, thief)
        }
    }

    /// Fifty device tokens that were obtained with the password.
    private static func hoard(_ thief: Guesser, _ server: TestServer) throws -> [Text] {
        let hoard = try (0..<50).map { _ in try thief.signIn(email).deviceToken }
        #expect(Set(hoard).count == 50)
        server.clock.advance(by: .seconds(1))
        return hoard
    }

    /// All of these tokens together admit as many guesses as a stranger has.
    private static func expectWorthless(_ hoard: [Text], _ thief: Guesser) {
        let reasons = (0..<500).map { number in
            thief.tryPassword("x", of: email, deviceToken: hoard[number % hoard.count]).reason
        }
        #expect(reasons.count { $0 == wrongCredentials } == 6)
    }

    /// Imports the user from another system, which knew the password long before the thief signed in here.
    private static func importOldPassword(
        _ uid: Text, _ client: IdentityClient, onConflict: ImportConflict
    ) throws -> UsersImportResponse {
        var row = ImportUser(uid: uid, email: email)
        row.passwordHash = Secret("$2a$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a")
        row.passwordUpdatedAtMicros = 1
        return try ImportTests.importing(client.client, [row], spec: .bcrypt(BcryptSpec()), onConflict: onConflict)
    }

    @Test func `Hoarded device tokens are worth nothing after an import replaced the password`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signUp(Self.email).user).uid
            let thief = try Guesser(server, isTrusted: false)
            let hoard = try Self.hoard(thief, server)
            #expect(try Self.importOldPassword(uid, client, onConflict: .replace).replacedCount == 1)
            Self.expectWorthless(hoard, thief)
        }
    }

    /// The row says how old its password is, and knows nothing of the account that had the uid here.
    @Test func `Hoarded device tokens are worth nothing to an account that was imported anew`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signUp(Self.email).user).uid
            let thief = try Guesser(server, isTrusted: false)
            let hoard = try Self.hoard(thief, server)
            let _: UsersDeleteResponse = try client.client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
            #expect(try Self.importOldPassword(uid, client, onConflict: .fail).createdCount == 1)
            Self.expectWorthless(hoard, thief)
        }
    }

    // MARK: Restarts

    @Test func `A restart forgets neither the guesses nor the addresses of the owner`() async throws {
        try await withTemporaryDirectory { directory in
            let clock = ManualClock()
            let masterKey = MasterKey.generate(random: .system)
            let adminKey = try await withServer(directory: directory, clock: clock, masterKey: masterKey) { server in
                _ = try IdentityClient(server).signUp(Self.email)
                let guesser = try Guesser(server)
                _ = try guesser.signIn(Self.email, from: "192.0.2.1")
                for number in 0..<120 { _ = guesser.tryPassword("x", of: Self.email, from: Text("198.18.0.\(number)")) }
                for number in 0..<40 {
                    _ = guesser.tryPassword("x", of: Text("user\(number)@example.com"), from: "198.51.100.7")
                }
                await server.project.guesses.save()
                return server.adminKey
            }
            clock.advance(by: .seconds(5))
            try await withServer(directory: directory, clock: clock, masterKey: masterKey, adminKey: adminKey) {
                server in
                let guesser = try Guesser(server)
                #expect(guesser.tryPassword("x", of: Self.email, from: "203.0.113.1").reason == tooManyAttempts)
                #expect(
                    guesser.tryPassword("x", of: "bob@example.com", from: "198.51.100.7").reason == tooManyAttempts)
                _ = try guesser.signIn(Self.email, from: "192.0.2.1")
                clock.advance(by: .hours(1))
                #expect(guesser.tryPassword("x", of: Self.email, from: "203.0.113.1").reason == wrongCredentials)
                // Guesses that no longer count are deleted.
                await server.project.guesses.save()
                clock.advance(by: .hours(2))
                await server.project.sweep()
                let isEmpty = try server.project.store.read { transaction in
                    var isEmpty = true
                    try transaction.scan(Tables.guesses) { _ in
                        isEmpty = false
                        return false
                    }
                    return isEmpty
                }
                #expect(isEmpty)
            }
            try await withServer(directory: directory, clock: clock, masterKey: masterKey, adminKey: adminKey) {
                let guesser = try Guesser($0)
                #expect(guesser.tryPassword("x", of: Self.email, from: "203.0.113.1").reason == wrongCredentials)
            }
        }
    }
}
