import Base
import Messages
import Service
import TestSupport
import Testing

/// The answer to a token that no longer counts: every method that takes one × what became of the account.
@Suite struct DeadTokenAnswerTests {
    enum Fate: CaseIterable {
        case disabled, revokedThenDisabled, signedOutThenDisabled, evictedThenDisabled, deleted, revoked
        case passwordChanged, signedOut, evicted

        /// The answer of methods other than `Sessions.SignOut`.
        var answer: (code: StatusCode, reason: String) {
            switch self {
            case .disabled, .revokedThenDisabled, .signedOutThenDisabled, .evictedThenDisabled:
                (.permissionDenied, "USER_DISABLED")
            case .deleted: (.notFound, "USER_NOT_FOUND")
            case .revoked, .passwordChanged, .signedOut, .evicted: (.unauthenticated, "TOKEN_EXPIRED")
            }
        }
    }

    static let tokenFields: [Text] = ["id_token", "session_cookie", "refresh_token"]

    @Test(arguments: Fate.allCases)
    func `Every method gives the same answer to a dead token`(_ fate: Fate) async throws {
        let methods = PublishedMethod.all.filter { method in
            Self.tokenFields.contains { method.field(named: $0) != nil }
        }
        // The number of methods today: a new method is in the table by itself.
        #expect(methods.count >= 16)
        try await withServer(configure: { $0.limits.sessionsPerUserMax = 2 }) { server in
            let client = try IdentityClient(server)
            // A method that is switched off says so before it looks at a token.
            try client.setTenant(["enable_email_link_signin", "enable_phone_signin", "second_factor_state"]) {
                $0.secondFactorState = .enabled
                $0.enableEmailLinkSignin = true
                $0.enablePhoneSignin = true
            }
            let signedUp = try client.signUp("ada@example.com")
            let tokens = try #require(signedUp.tokens)
            let made: TokensCreateSessionCookieResponse = try client.client.call(
                "postern.v1.Tokens/CreateSessionCookie", TokensCreateSessionCookieRequest(idToken: tokens.idToken))
            server.clock.advance(by: .seconds(1))
            try Self.bring(client, fate, try #require(signedUp.user).uid, tokens)
            server.clock.advance(by: .seconds(1))
            let values: [Text: Text] = [
                "id_token": tokens.idToken, "session_cookie": made.sessionCookie,
                "refresh_token": tokens.refreshToken,
            ]
            for method in methods {
                for name in Self.tokenFields {
                    guard let field = method.field(named: name) else { continue }
                    var request = Self.rest(of: method, client)
                    request.append(field.number, values[name] ?? .empty)
                    try Self.expectAnswer(fate, method, name, request, server)
                }
            }
        }
    }

    private static func expectAnswer(
        _ fate: Fate, _ method: PublishedMethod, _ tokenField: Text, _ request: EncodedMessage, _ server: TestServer
    ) throws {
        let found = failure {
            if method.isResponseStreaming {
                _ = try RawStream<EncodedMessage>(server, method.fullName, request).next()
            } else {
                let _: EncodedMessage = try server.connect().call(method.fullName, request)
            }
        }
        let comment: Comment = "\(method.fullName) \(tokenField)"
        if method.fullName == "postern.v1.Sessions/SignOut" {
            // Signing out a second time succeeds.
            #expect(found.code == .ok, comment)
        } else if tokenField == "refresh_token", fate == .deleted || fate == .evicted || fate == .evictedThenDisabled {
            // No record is left that would tell whose session it was.
            #expect(["TOKEN_EXPIRED", "INVALID_REFRESH_TOKEN"].contains(found.reason), comment)
        } else {
            #expect(found.code == fate.answer.code && found.reason == fate.answer.reason, comment)
        }
    }

    /// The fields that the method checks before it looks at the token.
    static func rest(of method: PublishedMethod, _ client: IdentityClient) -> EncodedMessage {
        switch method.fullName {
        case "postern.v1.Accounts/SendOobCode":
            EncodedMessage(AccountsSendOobCodeRequest(requestType: .verifyEmail))
        case "postern.v1.Accounts/SignInWithIdp":
            EncodedMessage(AccountsSignInWithIdpRequest(credential: client.credential(.google())))
        default: EncodedMessage()
        }
    }

    private static func bring(_ client: IdentityClient, _ fate: Fate, _ uid: Text, _ tokens: TokenPair) throws {
        switch fate {
        case .disabled: break
        case .deleted:
            let _: UsersDeleteResponse = try client.client.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
        case .revoked, .revokedThenDisabled:
            let _: UsersRevokeTokensResponse = try client.client.call(
                "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid))
        case .passwordChanged: try client.update(uid, ["password"]) { $0.password = Secret("another horse") }
        case .signedOut, .signedOutThenDisabled:
            let _: SessionsSignOutResponse = try client.client.call(
                "postern.v1.Sessions/SignOut", SessionsSignOutRequest(idToken: tokens.idToken))
        case .evicted, .evictedThenDisabled:
            for _ in 0..<2 {
                _ = try client.signIn("ada@example.com")
                client.server.clock.advance(by: .seconds(1))
            }
        }
        if fate.answer.reason == "USER_DISABLED" { try client.update(uid, ["disabled"]) { $0.disabled = true } }
    }
}
