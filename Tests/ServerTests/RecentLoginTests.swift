import Base
import Identity
import JSON
import Messages
import TestSupport
import Testing

/// What needs a recent login, what makes one, and what ends everything that was before.
@Suite struct RecentLoginTests {
    /// What a session may do only for five minutes.
    enum Operation: CaseIterable {
        case delete, changePassword, changeEmail, sendEmailChange, linkProvider, linkPassword, linkMailbox, unlink
    }

    private static func reason(_ client: IdentityClient, _ operation: Operation, _ idToken: Text, mailbox code: Secret)
        -> String
    {
        func update(_ path: Text, _ change: (inout AccountsUpdateRequest) -> Void) throws {
            var request = AccountsUpdateRequest(
                idToken: idToken, updateMask: ProtobufFieldMask(paths: [path]), validateOnly: true)
            change(&request)
            let _: AccountsUpdateResponse = try client.client.call("postern.v1.Accounts/Update", request)
        }
        return failure {
            switch operation {
            case .delete:
                let _: AccountsDeleteResponse = try client.client.call(
                    "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: idToken, validateOnly: true))
            case .changePassword: try update("password") { $0.password = Secret("another horse") }
            case .changeEmail: try update("email") { $0.email = "new@example.com" }
            case .sendEmailChange:
                try client.sendOob(.verifyAndChangeEmail, newEmail: "new@example.com", idToken: idToken)
            case .linkProvider: _ = try client.signIn(.github("h-9", email: "else@example.com"), linkingTo: idToken)
            case .linkPassword: _ = try client.signUp("ada@gmail.com", linkingTo: idToken)
            case .linkMailbox: _ = try client.signIn("ada@gmail.com", link: code, linkingTo: idToken)
            case .unlink:
                let _: AccountsUnlinkResponse = try client.client.call(
                    "postern.v1.Accounts/Unlink",
                    AccountsUnlinkRequest(idToken: idToken, providerID: "google.com", force: true))
            }
        }.reason
    }

    private static func open(_ client: IdentityClient) throws {
        try client.setTenant(["enable_email_privacy", "enable_email_link_signin", "enable_anonymous_user"]) {
            $0.enableEmailLinkSignin = true
            $0.enableAnonymousUser = true
        }
    }

    private static func mailbox(_ client: IdentityClient) throws -> Secret {
        try client.sendOob(.emailSignin, email: "ada@gmail.com")
        return try #require(try client.mails().first).code
    }

    @Test(arguments: Operation.allCases)
    func `Five minutes after the login it is too old, and proving oneself makes it recent`(
        _ operation: Operation
    ) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.open(client)
            let user = try client.signIn(.google())
            server.clock.advance(by: .seconds(301))
            let refreshed = try #require(try client.refresh(user.tokens?.refreshToken ?? .empty).tokens)
            let code = try Self.mailbox(client)
            #expect(
                Self.reason(client, operation, refreshed.idToken, mailbox: code) == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
            let proved: AccountsReauthenticateResponse = try client.client.call(
                "postern.v1.Accounts/Reauthenticate",
                AccountsReauthenticateRequest(
                    idToken: refreshed.idToken, credential: .idp(client.credential(.google()))))
            let idToken = try #require(proved.tokens).idToken
            #expect(Self.reason(client, operation, idToken, mailbox: code) == "")
        }
    }

    @Test(arguments: [Operation.delete, .linkProvider, .linkPassword, .linkMailbox])
    func `An anonymous user's login is never too old`(_ operation: Operation) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.open(client)
            let idToken = try #require(try client.signUp().tokens).idToken
            server.clock.advance(by: .seconds(3_000))
            #expect(Self.reason(client, operation, idToken, mailbox: try Self.mailbox(client)) == "")
        }
    }

    /// A user who proved an email comes back by a link or a reset of the password. So a stolen refresh token must not
    /// be enough for the session's whole life.
    @Test(
        arguments: [Operation.delete, .changePassword, .changeEmail, .sendEmailChange, .linkProvider, .linkPassword],
        [true, false])
    func `An anonymous user's login counts once an email is proved`(
        _ operation: Operation, isProved: Bool
    ) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.open(client)
            let guest = try #require(try client.signUp().tokens)
            let changed: AccountsUpdateResponse = try client.client.call(
                "postern.v1.Accounts/Update",
                AccountsUpdateRequest(
                    idToken: guest.idToken, updateMask: ProtobufFieldMask(paths: ["email"]), email: "ada@gmail.com"))
            let idToken = try #require(changed.tokens).idToken
            if isProved { try client.verifyEmail(idToken) }
            server.clock.advance(by: .seconds(301))
            let code = try Self.mailbox(client)
            let refused = Self.reason(client, operation, idToken, mailbox: code)
            #expect(refused == (isProved ? "CREDENTIAL_TOO_OLD_LOGIN_AGAIN" : ""))
            guard isProved else { return }
            let link = EmailLinkCredential(email: "ada@gmail.com", oobCode: code)
            let proved = try LinkTests.reauthenticate(client, idToken, .emailLink(link))
            let recent = try #require(proved.tokens).idToken
            let allowed = Self.reason(client, operation, recent, mailbox: code)
            #expect(allowed == "")
        }
    }

    @Test func `An anonymous user's login counts once a back end signs the user in`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.open(client)
            let guest = try client.signUp()
            let uid = try #require(guest.user).uid
            let idToken = try #require(guest.tokens).idToken
            _ = try client.signIn(customTokenFor: uid)
            server.clock.advance(by: .seconds(301))
            let refused = Self.reason(client, .delete, idToken, mailbox: .empty)
            #expect(refused == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        }
    }

    @Test func `Proving oneself moves the login time, refreshing does not`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp("ada@gmail.com")
            let loggedInAt = server.clock.clock.now().seconds
            func authTime(_ tokens: TokenPair?) -> Int64? {
                claims(of: tokens?.idToken ?? .empty)["auth_time"]?.integer
            }
            server.clock.advance(by: .seconds(100))
            let refreshed = try client.refresh(user.tokens?.refreshToken ?? .empty)
            #expect(authTime(refreshed.tokens) == loggedInAt)
            let proved: AccountsReauthenticateResponse = try client.client.call(
                "postern.v1.Accounts/Reauthenticate",
                AccountsReauthenticateRequest(
                    idToken: refreshed.tokens?.idToken ?? .empty,
                    credential: .password(
                        EmailPasswordCredential(email: "ada@gmail.com", password: Secret("correct horse")))))
            #expect(authTime(proved.tokens) == loggedInAt + 100)
            let session = claims(of: user.tokens?.idToken ?? .empty)["sid"]
            #expect(session != nil && claims(of: proved.tokens?.idToken ?? .empty)["sid"] == session)
            server.clock.advance(by: .seconds(100))
            #expect(authTime(try client.refresh(proved.tokens?.refreshToken ?? .empty).tokens) == loggedInAt + 100)
        }
    }

    // MARK: What ends everything

    @Test func `Disabling ends every session for good`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp("ada@gmail.com")
            let other = try client.signIn("ada@gmail.com")
            let uid = try #require(user.user).uid
            server.clock.advance(by: .seconds(1))
            for isDisabled in [true, false] {
                try client.update(uid, ["disabled"]) { $0.disabled = isDisabled }
                for tokens in [user.tokens, other.tokens].compactMap({ $0 }) {
                    let reasons = [
                        failure { _ = try client.lookup(tokens.idToken) }.reason,
                        failure { _ = try client.refresh(tokens.refreshToken) }.reason,
                    ]
                    #expect(
                        reasons
                            == (isDisabled ? ["USER_DISABLED", "USER_DISABLED"] : ["TOKEN_EXPIRED", "TOKEN_EXPIRED"]))
                }
            }
            _ = try client.signIn("ada@gmail.com")
        }
    }

    @Test func `Taking an email back ends the sessions of whoever changed it`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let user = try client.signUp("old@example.com")
            try client.verifyEmail(try #require(user.tokens).idToken)
            try client.sendOob(
                .verifyAndChangeEmail, newEmail: "new@example.com", idToken: user.tokens?.idToken ?? .empty)
            _ = try client.applyOob(try #require(try client.mails().first).code)
            let thief = try #require(try client.signIn("new@example.com").tokens)
            server.clock.advance(by: .seconds(1))
            _ = try client.applyOob(try #require(try client.mails().first).code)
            expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(thief.idToken) }
            expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(thief.refreshToken) }
        }
    }
}
