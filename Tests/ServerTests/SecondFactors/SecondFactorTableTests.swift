import Base
import Identity
import Messages
import TestSupport
import Testing

/// No way to sign in leads around the second factor: every registered method, in every state of the tenant, for users
/// with every set of factors.
@Suite struct SecondFactorTableTests {
    enum Factors: String, CaseIterable, Sendable {
        case none, phone, totp, both
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let way: SignInWay
        let state: SecondFactorState
        let factors: Factors

        var testDescription: String { "\(way.testDescription) \(state) \(factors)" }

        var expected: String {
            switch (state, factors) {
            case (.enabled, .none), (.disabled, _), (.unspecified, _): ""
            case (.mandatory, .none): "SECOND_FACTOR_ENROLLMENT_REQUIRED"
            case (.enabled, _), (.mandatory, _): "SECOND_FACTOR_REQUIRED"
            }
        }
    }

    static let states: [SecondFactorState] = [.disabled, .enabled, .mandatory]
    static let rows = SignInWay.returning.flatMap { way in
        states.flatMap { state in Factors.allCases.map { Row(way: way, state: state, factors: $0) } }
    }

    @Test(arguments: rows)
    func nobodyComesInWithoutTheFactor(_ row: Row) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setFactors(.enabled)
            try row.way.makeKnown(client, "old")
            let uid = try Self.onlyUser(client)
            try Self.enroll(row.factors, uid, client)
            try Self.endSessions(uid, client)
            try client.setFactors(row.state)
            let answer = failure { try row.way.signIn(client, "old") }
            #expect(answer.reason == row.expected)
            #expect(answer.metadata("pending_credential") != nil || answer.reason != "SECOND_FACTOR_REQUIRED")
            #expect(try Self.sessionCount(uid, client) == (row.expected.isEmpty ? 1 : 0))
            #expect(try Self.onlyUser(client) == uid)
        }
    }

    @Test(arguments: SignInWay.all.filter { $0.isSignUp }, states)
    func nobodySignsUpWithoutTheFactor(_ way: SignInWay, _ state: SecondFactorState) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setFactors(state)
            let answer = failure { try way.signIn(client, "new") }.reason
            let isAnonymous = way.driver.name == .anonymousSignUp
            let expected = isAnonymous ? "ADMIN_ONLY_OPERATION" : "SECOND_FACTOR_ENROLLMENT_REQUIRED"
            #expect(answer == (state == .mandatory ? expected : ""))
        }
    }

    /// Whatever proves the user again asks for the factor, too.
    @Test(arguments: ["password", "custom", "idp", "link", "phone"])
    func nobodyReauthenticatesWithoutTheFactor(_ kind: String) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setFactors(.enabled)
            let user = try client.appUser("ada@gmail.com")
            try client.update(user.uid, ["phone_number"]) { $0.phoneNumber = SecondFactorSignInTests.number }
            let idToken = user.tokens.idToken
            _ = try client.signIn(.google(), linkingTo: idToken)
            let refused = failure {
                let _: AccountsReauthenticateResponse = try client.client.call(
                    "postern.v1.Accounts/Reauthenticate",
                    AccountsReauthenticateRequest(
                        idToken: idToken, credential: try Self.credential(kind, user, client)))
            }
            #expect(refused.reason == "SECOND_FACTOR_REQUIRED")
            let done = try client.finish(Secret(refused.metadata("pending_credential") ?? ""), user)
            #expect(try client.lookup(done.tokens?.idToken ?? .empty).uid == user.uid)
        }
    }

    private static func credential(
        _ kind: String, _ user: AppUser, _ client: IdentityClient
    ) throws -> AccountsReauthenticateRequest.Credential {
        switch kind {
        case "password":
            return .password(EmailPasswordCredential(email: user.email, password: Secret("correct horse")))
        case "custom": return .customToken(try client.customToken(for: user.uid))
        case "idp": return .idp(client.credential(.google()))
        case "phone":
            let code = try client.code(to: SecondFactorSignInTests.number)
            return .phone(PhoneCredential(sessionInfo: code.sessionInfo, code: code.code))
        default:
            try client.sendOob(.emailSignin, email: user.email)
            let mail = try #require(try client.mails().first)
            return .emailLink(EmailLinkCredential(email: user.email, oobCode: mail.code))
        }
    }

    private static func enroll(_ factors: Factors, _ uid: Text, _ client: IdentityClient) throws {
        let user = try client.get(uid)
        try client.update(uid, user.email.isEmpty ? ["email", "email_verified"] : ["email_verified"]) {
            if user.email.isEmpty { $0.email = "old@example.com" }
            $0.emailVerified = true
        }
        if factors == .totp || factors == .both {
            let tokens = try #require(try client.signIn(customTokenFor: uid).tokens)
            _ = try client.enrollApp("", tokens.idToken)
        }
        if factors == .phone || factors == .both {
            let _: UsersAddSecondFactorResponse = try client.client.call(
                "postern.v1.Users/AddSecondFactor",
                UsersAddSecondFactorRequest(uid: uid, phoneNumber: "+14155550199"))
        }
    }

    private static func endSessions(_ uid: Text, _ client: IdentityClient) throws {
        let _: UsersRevokeTokensResponse = try client.client.call(
            "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid))
        client.server.clock.advance(by: .seconds(1))
    }

    private static func sessionCount(_ uid: Text, _ client: IdentityClient) throws -> Int {
        let listed: UsersListSessionsResponse = try client.client.call(
            "postern.v1.Users/ListSessions", UsersListSessionsRequest(uid: uid))
        return listed.sessions.count
    }

    private static func onlyUser(_ client: IdentityClient) throws -> Text {
        let listed: UsersListResponse = try client.client.call("postern.v1.Users/List", UsersListRequest())
        #expect(listed.users.count == 1)
        return listed.users.first?.uid ?? .empty
    }
}
