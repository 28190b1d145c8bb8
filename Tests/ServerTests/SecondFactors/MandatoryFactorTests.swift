import Base
import JSON
import Messages
import TestSupport
import Testing

/// Tenants in which nobody signs in without a second factor.
@Suite struct MandatoryFactorTests {
    private static let email: Text = "ada@example.com"

    /// The enrollment credential of a sign-in that stops because its user has no factor.
    private static func credential(_ signIn: () throws -> Void) -> Text {
        let stopped = failure(signIn)
        #expect(stopped.reason == "SECOND_FACTOR_ENROLLMENT_REQUIRED")
        return Text(stopped.metadata("enrollment_credential") ?? "")
    }

    @Test func `Who has no factor enrolls one before anything else`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.mandatory)
            let credential = Self.credential { _ = try client.signUp(Self.email) }
            #expect(try client.lookup(credential).email == Self.email)
            expectRefusal("UNVERIFIED_EMAIL") { _ = try client.startApp(credential) }
            try client.verifyEmail(credential)
            let user = try client.enrollApp(Self.email, credential)
            #expect(try client.firebase(user.tokens.idToken)["sign_in_second_factor"]?.string == "totp")
            #expect(try client.firebase(user.tokens.idToken)["sign_in_provider"]?.string == "password")
            // The credential was good for one enrollment.
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(credential) }
            _ = try client.finish(try client.pending(user), user)
        }
    }

    @Test func `The enrollment credential is good for nothing else`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.mandatory)
            let credential = Self.credential { _ = try client.signUp(Self.email) }
            let calls: [() throws -> Void] = [
                {
                    let _: TokensVerifyIdTokenResponse = try client.client.call(
                        "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: credential))
                },
                {
                    let _: TokensCreateSessionCookieResponse = try client.client.call(
                        "postern.v1.Tokens/CreateSessionCookie",
                        TokensCreateSessionCookieRequest(idToken: credential, validSeconds: 3_600))
                },
                {
                    let _: AccountsDeleteResponse = try client.client.call(
                        "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: credential))
                },
                { try SecondFactorSignInTests.changePassword(client, credential) },
                {
                    let _: SessionsListResponse = try client.client.call(
                        "postern.v1.Sessions/List", SessionsListRequest(idToken: credential))
                },
                { _ = try client.sendCode(to: SecondFactorSignInTests.number, idToken: credential) },
                { _ = try client.signIn(.google(), linkingTo: credential) },
            ]
            try client.allowPhones()
            for (index, call) in calls.enumerated() { expectRefusal("INVALID_ID_TOKEN", "call \(index)", call) }
            expectRefusal("INVALID_REFRESH_TOKEN") { _ = try client.refresh(credential) }
            expectRefusal("INVALID_MFA_PENDING_CREDENTIAL") {
                _ = try client.finish(Secret(credential.bytes), "x", .totpCode(Secret("123456")))
            }
            let _: SessionsSignOutResponse = try client.client.call(
                "postern.v1.Sessions/SignOut", SessionsSignOutRequest(idToken: credential))
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(credential) }
        }
    }

    /// The email comes first: without a verified one there is no factor.
    @Test func `Who signs in by phone only adds an email, and then a factor`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.mandatory)
            try client.allowPhones()
            func signIn() -> Text {
                Self.credential { _ = try client.signIn(phone: SecondFactorSignInTests.number) }
            }
            let first = signIn()
            expectRefusal("UNVERIFIED_EMAIL") { _ = try client.startApp(first) }
            expectRefusal("MISSING_EMAIL") { try client.sendOob(.verifyEmail, idToken: first) }
            try client.sendOob(.verifyAndChangeEmail, newEmail: Self.email, idToken: first)
            let mail = try #require(try client.mails().first { $0.message.to == Self.email })
            _ = try client.applyOob(mail.code)
            // A changed email voids the enrollment that was begun.
            expectRefusal("INVALID_ID_TOKEN") { _ = try client.lookup(first) }
            let user = try client.enrollApp(Self.email, signIn())
            #expect(try client.get(user.uid).email == Self.email)
            _ = try client.finish(
                try client.pending { _ = try client.signIn(phone: SecondFactorSignInTests.number) }, user)
            // "This was not me" takes the address away again.
            _ = try client.applyOob(mail.notMeCode)
            #expect(try client.get(user.uid).email.isEmpty)
        }
    }

    /// Somebody who has only the password wants to have another email in the account before its owner has a factor.
    @Test func `A change of the email that was asked for with a credential ends with the first factor`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.verifiedUser(Self.email)
            try client.setFactors(.mandatory)
            func signIn() -> Text { Self.credential { _ = try client.signIn(Self.email) } }
            try client.sendOob(.verifyAndChangeEmail, newEmail: "thief@example.com", idToken: signIn())
            let mail = try #require(try client.mails().first { $0.message.to == "thief@example.com" })
            let user = try client.enrollApp(Self.email, signIn())
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(mail.code) }
            expectRefusal("INVALID_OOB_CODE") { _ = try client.applyOob(mail.notMeCode) }
            #expect(try client.get(user.uid).email == Self.email)
            _ = try client.lookup(user.tokens.idToken)
        }
    }

    @Test func `A custom token whose user has to enroll first is not recorded as a sign-in`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signUp(Self.email).user).uid
            try client.setFactors(.mandatory)
            expectRefusal("SECOND_FACTOR_ENROLLMENT_REQUIRED") { _ = try client.signIn(customTokenFor: uid) }
            let events: AuditListEventsResponse = try client.client.call(
                "postern.v1.Audit/ListEvents",
                AuditListEventsRequest(filter: EventFilter(uid: uid, kinds: [.signedIn])))
            #expect(events.events.isEmpty)
        }
    }

    /// Otherwise the credential could go on to ask for changes of the email for half an hour.
    @Test(arguments: [true, false])
    func `An enrollment credential ends with the session in which it was obtained`(byAdmin: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let (stolen, own) = (try client.verifiedUser(Self.email), try client.signIn(Self.email).tokens)
            let ownToken = try #require(own).idToken
            try client.setFactors(.mandatory)
            func credential(_ idToken: Text) -> Text {
                Self.credential {
                    _ = try LinkTests.reauthenticate(client, idToken, LinkTests.password(Self.email, "correct horse"))
                }
            }
            let (stolenCredential, ownCredential) = (credential(stolen.idToken), credential(ownToken))
            let listed: SessionsListResponse = try client.client.call(
                "postern.v1.Sessions/List", SessionsListRequest(idToken: stolen.idToken))
            let current = listed.sessions.first { $0.current }
            let id = try #require(current).sessionID
            if byAdmin {
                let _: UsersRevokeSessionResponse = try client.client.call(
                    "postern.v1.Users/RevokeSession",
                    UsersRevokeSessionRequest(uid: try client.find(Self.email).uid, sessionID: id))
            } else {
                let _: SessionsRevokeResponse = try client.client.call(
                    "postern.v1.Sessions/Revoke", SessionsRevokeRequest(idToken: ownToken, target: .sessionID(id)))
            }
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(stolenCredential) }
            expectRefusal("TOKEN_EXPIRED") { _ = try client.startApp(stolenCredential) }
            expectRefusal("TOKEN_EXPIRED") {
                try client.sendOob(.verifyAndChangeEmail, newEmail: "thief@example.com", idToken: stolenCredential)
            }
            // The credentials of other sessions go on.
            _ = try client.enrollApp(Self.email, ownCredential)
        }
    }

    /// The sessions may be somebody else's who knew the password, and would go on for as long as they are used.
    @Test(arguments: [false, true])
    func `Enrolling with a credential ends the sessions that showed no factor`(reauthenticates: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let thief = try client.verifiedUser(Self.email)
            let own = try #require(try client.signIn(Self.email).tokens)
            try client.setFactors(.mandatory)
            let credential = Self.credential {
                if reauthenticates {
                    let password = LinkTests.password(Self.email, "correct horse")
                    _ = try LinkTests.reauthenticate(client, own.idToken, password)
                } else {
                    _ = try client.signIn(Self.email)
                }
            }
            let user = try client.enrollApp(Self.email, credential)
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(thief.idToken) }
            expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(thief.refreshToken) }
            #expect(try client.lookup(user.tokens.idToken).uid == user.uid)
            _ = try client.refresh(user.tokens.refreshToken)
        }
    }

    @Test func `Nobody is anonymous`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            let guest = try #require(try client.signUp().tokens)
            try client.setFactors(.mandatory)
            expectRefusal("ADMIN_ONLY_OPERATION") { _ = try client.signUp() }
            // An anonymous user who adds an email becomes known, and has to enroll a factor then.
            expectRefusal("SECOND_FACTOR_ENROLLMENT_REQUIRED") {
                _ = try client.signUp(Self.email, linkingTo: guest.idToken)
            }
            #expect(try client.find(Self.email).uid == (try client.lookup(guest.idToken).uid))
        }
    }

    @Test func `Sessions of before go on unless they are ended`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let app = try client.appUser()
            let others = try (0..<150).map { try #require(try client.signUp(Text("u\($0)@example.com")).tokens) }
            try client.setFactors(.mandatory)
            _ = try client.refresh(others[0].refreshToken)
            func update(_ ends: Bool) throws -> Int64 {
                let updated: TenantsUpdateResponse = try client.client.call(
                    "postern.v1.Tenants/Update",
                    TenantsUpdateRequest(
                        tenant: Messages.Tenant(secondFactorState: .mandatory),
                        updateMask: ProtobufFieldMask(paths: ["second_factor_state"]),
                        endSessionsWithoutSecondFactor: ends))
                return updated.endedSessionCount
            }
            #expect(try update(false) == 0)
            // The session in which ada's email was verified showed no factor, either.
            #expect(try update(true) >= 150)
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(others[149].idToken) }
            _ = try client.lookup(app.tokens.idToken)
            #expect(try update(true) == 0)
        }
    }
}
