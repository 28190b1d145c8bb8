import Base
import JSON
import Messages
import TestSupport
import Testing
import Wire

/// The scope of throttling: whose wrong passwords count against whom.
@Suite struct ThrottlingScopeTests {
    private static func signIn(_ client: IdentityClient, _ email: Text, _ password: Text, tenantID: Text) -> String {
        failure {
            let _: AccountsSignInWithPasswordResponse = try client.client.call(
                "postern.v1.Accounts/SignInWithPassword",
                AccountsSignInWithPasswordRequest(
                    tenantID: tenantID, email: email, password: Secret(password.bytes)))
        }.reason
    }

    private static func makeTenant(_ client: IdentityClient, _ id: Text, synthetic: Bool) throws -> TokenPair {
        let _: TenantsCreateResponse = try client.client.call(
            "postern.v1.Tenants/Create",
            TenantsCreateRequest(
                tenantID: id, tenant: Messages.Tenant(synthetic: synthetic),
                updateMask: ProtobufFieldMask(paths: ["synthetic"])))
        let made: AccountsSignUpResponse = try client.client.call(
            "postern.v1.Accounts/SignUp",
            AccountsSignUpRequest(tenantID: id, email: "ada@example.com", password: Secret("correct horse")))
        return try #require(made.tokens)
    }

    @Test func `An email is one bucket however it is written, and another tenant's is another`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            for id in ["acme", "other"] as [Text] { _ = try Self.makeTenant(client, id, synthetic: false) }
            let spellings: [Text] = ["ada@example.com", "Ada@example.com", "ADA@EXAMPLE.COM"]
            let reasons = (0..<9).map { Self.signIn(client, spellings[$0 % 3], "wrong", tenantID: "acme") }
            #expect(reasons.first == "INVALID_LOGIN_CREDENTIALS" && reasons.last == "TOO_MANY_ATTEMPTS_TRY_LATER")
            for spelling in spellings {
                let refused = Self.signIn(client, spelling, "correct horse", tenantID: "acme")
                #expect(refused == "TOO_MANY_ATTEMPTS_TRY_LATER")
            }
            #expect(Self.signIn(client, "ada@example.com", "correct horse", tenantID: "other") == "")
            #expect(Self.signIn(client, "eve@example.com", "wrong", tenantID: "acme") == "INVALID_LOGIN_CREDENTIALS")
        }
    }

    @Test func `A tenant for load tests makes nobody wait, and its tokens say what it is`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let fast = try Self.makeTenant(client, "fast", synthetic: true)
            let usual = try Self.makeTenant(client, "usual", synthetic: false)
            for _ in 0..<150 {
                #expect(
                    Self.signIn(client, "ada@example.com", "wrong", tenantID: "fast") == "INVALID_LOGIN_CREDENTIALS")
            }
            #expect(Self.signIn(client, "ada@example.com", "correct horse", tenantID: "fast") == "")
            #expect(claims(of: fast.idToken)["synthetic"] == true)
            #expect(claims(of: usual.idToken)["synthetic"] == nil)
        }
    }

    @Test(arguments: [false, true])
    func `A list of addresses cannot be tried out by signing up, with or without keys`(hasKeys: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let request = AccountsSignUpRequest(email: "ada@example.com", password: Secret("correct horse"))
            let reasons = (0..<10).map { number in
                failure {
                    _ = try client.client.call(
                        "postern.v1.Accounts/SignUp", request, returning: AccountsSignUpResponse.self,
                        metadata: hasKeys ? [.init(key: "idempotency-key", value: Text("k\(number)"))] : [])
                }.reason
            }
            #expect(reasons.first == "EMAIL_EXISTS")
            #expect(reasons.last == "TOO_MANY_ATTEMPTS_TRY_LATER")
        }
    }

    @Test func `Wrong passwords never lock an account for longer than a quarter of an hour`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            var longest = Duration.zero
            for _ in 0..<60 {
                let refused = failure { _ = try client.signIn("ada@example.com", password: "wrong") }
                guard let wait = refused.retryAfter else { continue }
                longest = max(longest, wait)
                server.clock.advance(by: wait)
            }
            #expect(longest == .minutes(15))
            let refused = failure { _ = try client.signIn("ada@example.com") }
            if let wait = refused.retryAfter {
                server.clock.advance(by: wait)
                _ = try client.signIn("ada@example.com")
            } else {
                #expect(refused.reason.isEmpty)
            }
        }
    }

    /// The waiting of somebody who guesses must not end when the owner signs in by other means than the password: it
    /// would tell when that is. The owner's own address need not wait any more.
    @Test(arguments: [false, true])
    func `Whoever guesses does not see when the owner signs in`(hasSecondFactor: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setFactors(.enabled)
            let user = hasSecondFactor ? try client.appUser() : nil
            if user == nil { _ = try client.verifiedUser("ada@example.com") }
            let guesser = try Guesser(server)
            let (own, foreign): (Text, Text) = ("192.0.2.1", "192.0.2.2")
            for address in [own, foreign] {
                for _ in 0..<12 {
                    let wait = guesser.tryPassword("wrong", of: "ada@example.com", from: address).retryAfter
                    if let wait, wait < .seconds(60) { server.clock.advance(by: wait) }
                }
                #expect(guesser.tryPassword("wrong", of: "ada@example.com", from: address).reason == tooManyAttempts)
            }
            try client.sendOob(.emailSignin, email: "ada@example.com")
            let link = try #require(try client.mails().first).code
            func signIn() throws {
                let _: AccountsSignInWithEmailLinkResponse = try guesser.client.call(
                    "postern.v1.Accounts/SignInWithEmailLink",
                    AccountsSignInWithEmailLinkRequest(email: "ada@example.com", oobCode: link, endUserIP: own))
            }
            if let user {
                let pending = try client.pending(signIn)
                let _: AccountsFinalizeMfaSignInResponse = try guesser.client.call(
                    "postern.v1.Accounts/FinalizeMfaSignIn",
                    AccountsFinalizeMfaSignInRequest(
                        pendingCredential: pending, factorID: user.factorID, proof: .totpCode(user.code(server)),
                        endUserIP: own))
            } else {
                try signIn()
            }
            #expect(guesser.tryPassword("wrong", of: "ada@example.com", from: foreign).reason == tooManyAttempts)
            #expect(guesser.tryPassword("wrong", of: "ada@example.com", from: own).reason == wrongCredentials)
        }
    }
}
