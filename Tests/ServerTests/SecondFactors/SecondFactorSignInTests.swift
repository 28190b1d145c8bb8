import Base
import Identity
import JSON
import Messages
import TestSupport
import Testing
import Wire

/// Signing in with a second factor.
@Suite struct SecondFactorSignInTests {
    @Test func `A user with an authenticator app signs in with a code of it`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let refused = failure { _ = try client.signIn(user.email) }
            #expect(refused.reason == "SECOND_FACTOR_REQUIRED" && refused.code == .failedPrecondition)
            let hints = try JSONValue(parsing: [UInt8]((refused.metadata("second_factors") ?? "").utf8))
            let enrolled = try #require(try client.get(user.uid).secondFactors.first)
            #expect(hints.array?.count == 1)
            #expect(hints.array?.first?["factorId"]?.string == user.factorID.string)
            #expect(hints.array?.first?["kind"]?.string == "totp")
            #expect(hints.array?.first?["displayName"]?.string == "app")
            #expect(enrolled.factorID == user.factorID && enrolled.enrolledAtMicros > 0)
            let before = try client.get(user.uid).lastSignInAtMicros
            let pending = Secret(refused.metadata("pending_credential") ?? "")
            #expect(try client.get(user.uid).lastSignInAtMicros == before)

            let done = try client.finish(pending, user)
            let tokens = try #require(done.tokens)
            #expect(done.user?.uid == user.uid && !done.isNewUser && !done.deviceToken.isEmpty)
            #expect(try client.get(user.uid).lastSignInAtMicros > before)
            let firebase = try client.firebase(tokens.idToken)
            #expect(firebase["sign_in_second_factor"]?.string == "totp")
            #expect(firebase["second_factor_identifier"]?.string == user.factorID.string)
            #expect(firebase["sign_in_provider"]?.string == "password")
            expectRefusal("INVALID_MFA_PENDING_CREDENTIAL") { _ = try client.finish(pending, user) }
        }
    }

    @Test func `The factor stays in the session's tokens`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            func factor(_ idToken: Text?) throws -> String? {
                try client.firebase(idToken ?? .empty)["sign_in_second_factor"]?.string
            }
            // The session in which the app was enrolled showed it.
            #expect(try factor(user.tokens.idToken) == "totp")
            let signedIn = try #require(try client.finish(try client.pending(user), user).tokens)
            let refreshed = try client.refresh(signedIn.refreshToken)
            #expect(try factor(refreshed.tokens?.idToken) == "totp")
            let changed: AccountsUpdateResponse = try client.client.call(
                "postern.v1.Accounts/Update",
                AccountsUpdateRequest(
                    idToken: refreshed.tokens?.idToken ?? .empty, updateMask: ProtobufFieldMask(paths: ["password"]),
                    password: Secret("correct horse 2")))
            #expect(try factor(changed.tokens?.idToken) == "totp")
        }
    }

    @Test func `Reauthentication asks for the factor, and moves the login only then`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let tokens = try #require(try client.finish(try client.pending(user), user).tokens)
            server.clock.advance(by: .minutes(10))
            let pending = try client.pending { try Self.reauthenticate(client, user, tokens.idToken) }
            expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") { try Self.changePassword(client, tokens.idToken) }
            let done = try #require(try client.finish(pending, user).tokens)
            try Self.changePassword(client, done.idToken)
            // It is the same session: there is no other.
            let sessions: UsersListSessionsResponse = try client.client.call(
                "postern.v1.Users/ListSessions", UsersListSessionsRequest(uid: user.uid))
            #expect(sessions.sessions.count == 1)
        }
    }

    @Test func `A recovery code is good once, in any spelling`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            #expect(user.recoveryCodes.count == 10)
            #expect(try client.get(user.uid).recoveryCodeCount == 10)
            let typed = user.recoveryCodes[3].withBytes { String(decoding: $0, as: UTF8.self) }.uppercased()
            let tokens = try #require(
                try client.finish(try client.pending(user), "", .recoveryCode(Secret(" \(typed)"))).tokens)
            let firebase = try client.firebase(tokens.idToken)
            #expect(firebase["sign_in_second_factor"]?.string == "recovery_code")
            #expect(firebase["second_factor_identifier"] == nil)
            #expect(try client.get(user.uid).recoveryCodeCount == 9)
            let again = try client.pending(user)
            expectRefusal("INVALID_CODE") { _ = try client.finish(again, "", .recoveryCode(user.recoveryCodes[3])) }
            // New recovery codes replace all old ones.
            let renewed: AccountsRenewRecoveryCodesResponse = try client.client.call(
                "postern.v1.Accounts/RenewRecoveryCodes", AccountsRenewRecoveryCodesRequest(idToken: tokens.idToken))
            #expect(renewed.recoveryCodes.count == 10)
            #expect(try client.get(user.uid).recoveryCodeCount == 10)
            expectRefusal("INVALID_CODE") { _ = try client.finish(again, "", .recoveryCode(user.recoveryCodes[4])) }
            _ = try client.finish(again, "", .recoveryCode(renewed.recoveryCodes[0]))
            let counts = server.project.secondFactorSignIns.counts
            #expect(counts.asked.value == 2)
            #expect(counts.outcomes(of: .recoveryCode).right.value == 2)
            #expect(counts.outcomes(of: .recoveryCode).wrong.value == 2)
            #expect(counts.outcomes(of: .totp).right.value == 0)
        }
    }

    @Test func `A refused code may have been used before, and the message says so`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let code = user.code(server)
            _ = try client.finish(try client.pending(user), user, code)
            let again = failure { _ = try client.finish(try client.pending(user), user, code) }
            #expect(again.reason == "INVALID_CODE" && again.message.contains("was used before (also for enrolling)"))
            _ = try client.finish(try client.pending(user), "", .recoveryCode(user.recoveryCodes[0]))
            let used = failure {
                _ = try client.finish(try client.pending(user), "", .recoveryCode(user.recoveryCodes[0]))
            }
            #expect(used.reason == "INVALID_CODE" && used.message.contains("was used before"))
        }
    }

    @Test func `A user with a phone signs in with the code that is sent to it`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let email: Text = "ada@example.com"
            let enrolled = try client.enrollPhone(Self.number, try client.verifiedUser(email).idToken)
            #expect(enrolled.recoveryCodes.count == 10)
            let refused = failure { _ = try client.signIn(email) }
            #expect(refused.metadata("second_factors")?.contains(#""phoneNumber":"+*******0123""#) == true)
            let pending = Secret(refused.metadata("pending_credential") ?? "")
            let sent = try client.startSMS(pending, enrolled.factorID)
            let code = IdentityClient.PhoneCode(
                sessionInfo: sent.sessionInfo, code: try client.newestCode(to: Self.number))
            func shown(_ code: IdentityClient.PhoneCode) -> AccountsFinalizeMfaSignInRequest.Proof {
                .phone(PhoneCredential(sessionInfo: code.sessionInfo, code: code.code))
            }
            expectRefusal("INVALID_CODE") { _ = try client.finish(pending, enrolled.factorID, shown(code.wrong())) }
            // The user's events tell of the code that went out, and of the wrong one that was tried.
            let events: AuditListEventsResponse = try client.client.call(
                "postern.v1.Audit/ListEvents",
                AuditListEventsRequest(
                    filter: EventFilter(
                        uid: enrolled.user?.uid ?? .empty, kinds: [.verificationCodeSent, .secondFactorFailed])))
            #expect(
                events.events.map(\.kind) == [.secondFactorFailed, .verificationCodeSent, .verificationCodeSent])
            let tokens = try #require(try client.finish(pending, enrolled.factorID, shown(code)).tokens)
            let firebase = try client.firebase(tokens.idToken)
            #expect(firebase["sign_in_second_factor"]?.string == "phone")
            #expect(firebase["second_factor_identifier"]?.string == enrolled.factorID.string)
        }
    }

    @Test func `A lost answer is given again to the same request`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            func signIn() -> Failure {
                failure {
                    let _: AccountsSignInWithPasswordResponse = try client.client.call(
                        "postern.v1.Accounts/SignInWithPassword",
                        AccountsSignInWithPasswordRequest(email: user.email, password: Secret("correct horse")),
                        metadata: [.init(key: "idempotency-key", value: "begin")])
                }
            }
            let (first, again) = (signIn(), signIn())
            #expect(first.reason == "SECOND_FACTOR_REQUIRED")
            #expect(first.metadata("pending_credential") == again.metadata("pending_credential"))
            let pending = Secret(first.metadata("pending_credential") ?? "")
            let code = user.code(server)
            let done = try client.finish(pending, user.factorID, .totpCode(code), key: "finish")
            let repeated = try client.finish(pending, user.factorID, .totpCode(code), key: "finish")
            #expect(done.tokens?.refreshToken == repeated.tokens?.refreshToken)
            #expect(signIn().reason == "ALREADY_DONE")
        }
    }

    /// A sign-in changes the account only when it is finished: here a provider's identity joins the account.
    @Test func `A sign-in that is not finished changes nothing`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser("ada@gmail.com")
            let pending = try client.pending { _ = try client.signIn(.google()) }
            #expect(try client.get(user.uid).providers.map(\.providerID) == ["password"])
            _ = try client.finish(pending, user)
            #expect(Set(try client.get(user.uid).providers.map(\.providerID)) == ["password", "google.com"])
            // A sign-in is refused when the account changed meanwhile.
            let apple = try client.pending { _ = try client.signIn(.apple()) }
            try client.update(user.uid, ["display_name"]) { $0.displayName = "Ada" }
            server.clock.advance(by: .seconds(60))
            expectRefusal("ACCOUNT_CHANGED") { _ = try client.finish(apple, user) }
            #expect(Set(try client.get(user.uid).providers.map(\.providerID)) == ["password", "google.com"])
        }
    }

    /// The note that a back end knows the user is made with the first custom token. It is no change by somebody else.
    @Test func `The first custom tokens for an account do not get in the way of other sign-ins`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser("ada@gmail.com")
            let google = try client.pending { _ = try client.signIn(.google()) }
            let devices = try (0..<3).map { _ in
                try client.pending { _ = try client.signIn(customTokenFor: user.uid) }
            }
            for pending in [devices[0], devices[1], google] {
                #expect(try client.finish(pending, user).tokens != nil)
                server.clock.advance(by: .seconds(60))
            }
            #expect(Set(try client.get(user.uid).providers.map(\.providerID)) == ["password", "google.com"])
            try client.update(user.uid, ["display_name"]) { $0.displayName = "Countess" }
            #expect(try client.finish(devices[2], user).tokens != nil)
        }
    }

    @Test func `What is not there is missed in order`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let pending = try client.pending(user)
            expectRefusal("MISSING_MFA_PENDING_CREDENTIAL") { _ = try client.finish(.empty, "", .totpCode(.empty)) }
            expectRefusal("MISSING_CREDENTIAL") {
                let _: AccountsFinalizeMfaSignInResponse = try client.client.call(
                    "postern.v1.Accounts/FinalizeMfaSignIn",
                    AccountsFinalizeMfaSignInRequest(pendingCredential: pending))
            }
            expectRefusal("MISSING_MFA_ENROLLMENT_ID") { _ = try client.finish(pending, "", .totpCode(.empty)) }
            expectRefusal("MISSING_VERIFICATION_CODE") { _ = try client.finish(pending, user, .empty) }
            expectRefusal("INVALID_CODE") { _ = try client.finish(pending, user, Secret("12345")) }
            expectRefusal("INVALID_CODE") { _ = try client.finish(pending, "", .recoveryCode(Secret("12345"))) }
            expectRefusal("MFA_ENROLLMENT_NOT_FOUND") {
                _ = try client.finish(pending, "nobody", .totpCode(user.code(server)))
            }
            expectRefusal("MISSING_MFA_ENROLLMENT_ID") { _ = try client.startSMS(pending, "") }
            expectRefusal("MFA_ENROLLMENT_NOT_FOUND") { _ = try client.startSMS(pending, user.factorID) }
            server.clock.advance(by: .minutes(5))
            expectRefusal("INVALID_MFA_PENDING_CREDENTIAL") { _ = try client.finish(pending, user) }
        }
    }

    /// The authenticator app is not ours, and it is given what a person would copy.
    @Test func `A code of oathtool signs in`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            func code(_ totp: TotpSecret?) throws -> Secret {
                let key = totp?.sharedSecret.withBytes { String(decoding: $0, as: UTF8.self) } ?? ""
                let output = "\(server.directory)/oathtool"
                let now = "--now=@\(server.clock.clock.now().seconds)"
                let status = try ChildProcess("oathtool", ["--totp", "--base32", now, key], output: output).wait()
                #expect(status == 0)
                return Secret(ChildProcess.lines(in: output).first ?? "")
            }
            let idToken = try client.verifiedUser("ada@example.com").idToken
            let started = try client.startApp(idToken)
            let factorID = try client.finalize(started, try code(started.totp), idToken).factorID
            server.clock.advance(by: .seconds(30))
            let pending = try client.pending { _ = try client.signIn("ada@example.com") }
            let done = try client.finish(pending, factorID, .totpCode(try code(started.totp)))
            #expect(done.user?.email == "ada@example.com")
        }
    }

    static let number: Text = "+14155550123"

    static func reauthenticate(_ client: IdentityClient, _ user: AppUser, _ idToken: Text) throws {
        let _: AccountsReauthenticateResponse = try client.client.call(
            "postern.v1.Accounts/Reauthenticate",
            AccountsReauthenticateRequest(
                idToken: idToken,
                credential: .password(
                    EmailPasswordCredential(email: user.email, password: Secret("correct horse")))))
    }

    static func changePassword(_ client: IdentityClient, _ idToken: Text) throws {
        let _: AccountsUpdateResponse = try client.client.call(
            "postern.v1.Accounts/Update",
            AccountsUpdateRequest(
                idToken: idToken, updateMask: ProtobufFieldMask(paths: ["password"]), password: Secret("correct horse"))
        )
    }
}
