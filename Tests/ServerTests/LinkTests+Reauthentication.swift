import Base
import Identity
import JSON
import Messages
import Rules
import TestSupport
import Testing

/// Reauthentication of a user who is signed in.
extension LinkTests {
    static func reauthenticate(
        _ client: IdentityClient, _ idToken: Text, _ credential: AccountsReauthenticateRequest.Credential?
    ) throws -> AccountsReauthenticateResponse {
        try client.client.call(
            "postern.v1.Accounts/Reauthenticate",
            AccountsReauthenticateRequest(idToken: idToken, credential: credential))
    }

    static func password(_ email: Text, _ password: Text) -> AccountsReauthenticateRequest.Credential {
        .password(EmailPasswordCredential(email: email, password: Secret(password.bytes)))
    }

    @Test func aPasswordOrAnIdentityMakesTheLoginRecent() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp("ada@gmail.com")
            _ = try client.signIn(.facebook(email: ""), linkingTo: user.tokens!.idToken)
            var idToken = user.tokens!.idToken
            for byPassword in [true, false] {
                server.clock.advance(by: .seconds(600))
                expectRefusal("CREDENTIAL_TOO_OLD_LOGIN_AGAIN") { _ = try Self.unlink(client, "facebook.com", idToken) }
                let credential =
                    byPassword
                    ? Self.password("ADA@gmail.com", "correct horse") : .idp(client.credential(.facebook(email: "")))
                let proved = try Self.reauthenticate(client, idToken, credential)
                idToken = proved.tokens!.idToken
                expectRefusal("NO_SUCH_PROVIDER") { _ = try Self.unlink(client, "absent.com", idToken) }
                // A refresh does not move the time of the login.
                let refreshed = try client.refresh(proved.tokens!.refreshToken)
                idToken = refreshed.tokens!.idToken
            }
        }
    }

    @Test func onlyTheUsersOwnCredentialsProveIt() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp("ada@example.com")
            _ = try client.signUp("eve@example.com", password: "eve's password")
            _ = try client.signIn(.github(email: "eve@elsewhere.example"))
            let idToken = user.tokens!.idToken
            let cases: [(AccountsReauthenticateRequest.Credential?, String)] = [
                (Self.password("ada@example.com", "wrong"), "INVALID_LOGIN_CREDENTIALS"),
                (Self.password("eve@example.com", "eve's password"), "USER_MISMATCH"),
                (.idp(client.credential(.github(email: "eve@elsewhere.example"))), "USER_MISMATCH"),
                (.idp(client.credential(.google("nobody"))), "USER_MISMATCH"),
                (nil, "MISSING_CREDENTIAL"),
            ]
            for (credential, reason) in cases {
                expectRefusal(reason) { _ = try Self.reauthenticate(client, idToken, credential) }
            }
        }
    }

    @Test func aCustomTokenOrALinkInTheMailProvesItsUserOnce() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            let user = try client.signUp("ada@example.com")
            let uid = user.user!.uid
            func prove(_ credential: AccountsReauthenticateRequest.Credential) -> String {
                failure { _ = try Self.reauthenticate(client, user.tokens!.idToken, credential) }.reason
            }
            let token = try client.customToken(for: uid)
            #expect(prove(.customToken(token)) == "")
            #expect(prove(.customToken(token)) == "INVALID_CUSTOM_TOKEN")
            #expect(prove(.customToken(try client.customToken(for: "eve"))) == "USER_MISMATCH")
            try client.sendOob(.emailSignin, email: "ada@example.com")
            let code = try #require(try client.mails().first).code
            let link = AccountsReauthenticateRequest.Credential.emailLink(
                EmailLinkCredential(email: "ada@example.com", oobCode: code))
            #expect(prove(link) == "")
            #expect(prove(link) == "INVALID_OOB_CODE")
            try client.sendOob(.emailSignin, email: "eve@example.com")
            let foreign = try #require(try client.mails().first).code
            let mismatch = AccountsReauthenticateRequest.Credential.emailLink(
                EmailLinkCredential(email: "eve@example.com", oobCode: foreign))
            #expect(prove(mismatch) == "USER_MISMATCH")
        }
    }

    /// The back end has taken the role away from its user since the session began.
    @Test(arguments: [true, false])
    func aCustomTokenWithoutClaimsTakesTheSessionsClaimsAway(hasEmptyObject: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let backEnd = try BackEnd(server)
            let role: JSONValue = ["role": "admin"]
            let none: JSONValue = [:]
            let begun = try backEnd.signIn(backEnd.token(backEnd.claims.with("claims", role)))
            let former = try #require(begun.tokens)
            #expect(claims(of: former.idToken)["role"] == "admin")
            let token = backEnd.token(hasEmptyObject ? backEnd.claims.with("claims", none) : backEnd.claims)
            let proved = try Self.reauthenticate(client, former.idToken, .customToken(Secret(token.bytes)))
            let tokens = try #require(proved.tokens)
            let refreshed = try #require(try client.refresh(tokens.refreshToken).tokens)
            for idToken in [tokens.idToken, refreshed.idToken] {
                #expect(claims(of: idToken)["role"] == nil)
                #expect(claims(of: idToken)["firebase"]?["sign_in_provider"] == "custom")
            }
        }
    }

    /// Only a custom token says what its session's claims are.
    @Test func otherCredentialsLeaveTheClaimsOfACustomToken() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let backEnd = try BackEnd(server)
            let uid = try #require(try client.signUp("ada@example.com").user).uid
            let wanted = backEnd.claims.with("uid", JSONValue.string(uid)).with("claims", ["role": "admin"])
            let begun = try #require(try backEnd.signIn(backEnd.token(wanted)).tokens)
            let proved = try Self.reauthenticate(
                client, begun.idToken, Self.password("ada@example.com", "correct horse"))
            let idToken = try #require(proved.tokens).idToken
            #expect(claims(of: idToken)["role"] == "admin")
        }
    }

    @Test func wrongPasswordsShareTheThrottleOfSignIn() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp("ada@example.com")
            var reasons: [String] = []
            for _ in 0..<12 {
                reasons.append(
                    failure {
                        _ = try Self.reauthenticate(
                            client, user.tokens!.idToken, Self.password("ada@example.com", "wrong"))
                    }.reason)
            }
            #expect(reasons.first == "INVALID_LOGIN_CREDENTIALS")
            #expect(reasons.last == "TOO_MANY_ATTEMPTS_TRY_LATER")
            expectRefusal("TOO_MANY_ATTEMPTS_TRY_LATER") { _ = try client.signIn("ada@example.com") }
        }
    }
}
