import Base
import Messages
import TestSupport
import Testing

/// What end users do with an email and a password, in the order of the checks.
@Suite struct AccountsTests {
    // MARK: Signing up

    @Test(arguments: [
        ("", "", true, true, "ADMIN_ONLY_OPERATION"), ("", "correct horse", true, true, "MISSING_EMAIL"),
        ("ada@example.com", "", true, true, "MISSING_PASSWORD"),
        ("ada@example.com", "correct horse", false, true, "OPERATION_NOT_ALLOWED"),
        ("ada@example.com", "correct horse", false, false, "OPERATION_NOT_ALLOWED"),
        ("TAKEN@example.com", "correct horse", true, false, "ADMIN_RESTRICTED_OPERATION"),
        ("no address", "short", true, false, "ADMIN_RESTRICTED_OPERATION"),
        ("no address", "short", true, true, "INVALID_EMAIL"), ("ada@example.com", "short", true, true, "WEAK_PASSWORD"),
        ("TAKEN@example.com", "correct horse", true, true, "EMAIL_EXISTS"),
        ("ada@example.com", "correct horse", true, true, ""), ("ada@example.com", "sechs6", true, true, ""),
    ])
    func refusalsComeInOrder(
        _ email: Text, _ password: Text, _ passwordsAllowed: Bool, _ signUpAllowed: Bool, _ reason: String
    ) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("taken@example.com")
            try client.setTenant(["allow_password_signup", "client.permissions.disabled_user_signup"]) {
                $0.allowPasswordSignup = passwordsAllowed
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: !signUpAllowed))
            }
            let refused = failure {
                let _: AccountsSignUpResponse = try client.client.call(
                    "postern.v1.Accounts/SignUp",
                    AccountsSignUpRequest(email: email, password: Secret(password.bytes)))
            }
            #expect(refused.reason == reason)
        }
    }

    @Test func aNewUserHasOnlyItsEmail() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("Ada@Example.com")
            let user = try #require(made.user)
            #expect(user.email == "Ada@Example.com" && !user.emailVerified)
            #expect(user.displayName.isEmpty && user.photoURL.isEmpty && user.phoneNumber.isEmpty)
            #expect(user.providers.map(\.providerID) == ["password"])
            #expect(user.uid.byteCount == 28)
            let read = try client.lookup(made.tokens!.idToken)
            #expect(read.uid == user.uid && read.email == user.email)
        }
    }

    // MARK: Signing in

    @Test(arguments: [true, false]) func signInTellsNoMoreThanTheTenantAllows(_ isPrivate: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = isPrivate }
            let disabled = try client.signUp("disabled@example.com").user!.uid
            try client.update(disabled, ["disabled"]) { $0.disabled = true }
            _ = try client.signUp("known@example.com")
            let _: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create", UsersCreateRequest(email: "bare@example.com"))
            func reason(_ email: Text, _ password: Text) -> String {
                failure { _ = try client.signIn(email, password: password) }.reason
            }
            let wrong = isPrivate ? "INVALID_LOGIN_CREDENTIALS" : "INVALID_PASSWORD"
            #expect(reason("unknown@example.com", "x") == (isPrivate ? "INVALID_LOGIN_CREDENTIALS" : "EMAIL_NOT_FOUND"))
            #expect(reason("known@example.com", "x") == wrong)
            #expect(reason("bare@example.com", "x") == wrong)
            #expect(reason("disabled@example.com", "x") == wrong)
            #expect(reason("disabled@example.com", "correct horse") == "USER_DISABLED")
            #expect(reason("KNOWN@example.com", "correct horse") == "")
            #expect(reason("", "x") == "MISSING_EMAIL")
            #expect(reason("known@example.com", "") == "MISSING_PASSWORD")
            #expect(reason("known", "x") == "INVALID_EMAIL")
            try client.setTenant(["allow_password_signup"]) { $0.allowPasswordSignup = false }
            #expect(reason("known@example.com", "correct horse") == "PASSWORD_LOGIN_DISABLED")
        }
    }

    // MARK: Throttling

    /// A client whose key is trusted, or not, to name the addresses of end users.
    static func client(_ server: TestServer, trusted: Bool) throws -> RawClient {
        let admin = try server.connect()
        let made: ProjectCreateApiKeyResponse = try admin.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(
                role: .app, scope: Scope(tenants: .all(true)), trustedEndUserIP: trusted))
        let client = try server.connect(authenticated: false)
        client.apiKey = made.secretKey
        return client
    }

    static func signIn(
        _ client: RawClient, _ password: Text, from address: Text, email: Text = "ada@example.com"
    ) -> Failure {
        failure {
            let _: AccountsSignInWithPasswordResponse = try client.call(
                "postern.v1.Accounts/SignInWithPassword",
                AccountsSignInWithPasswordRequest(
                    email: email, password: Secret(password.bytes), endUserIP: address))
        }
    }

    @Test func wrongPasswordsCostEverLongerWaitsAndNeverALock() async throws {
        try await withServer { server in
            _ = try IdentityClient(server).signUp("ada@example.com")
            let client = try Self.client(server, trusted: true)
            for _ in 0..<6 {
                #expect(Self.signIn(client, "x", from: "192.0.2.1").reason == "INVALID_LOGIN_CREDENTIALS")
            }
            let refused = Self.signIn(client, "correct horse", from: "192.0.2.1")
            #expect(refused.code == .resourceExhausted && refused.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
            #expect(refused.retryAfter == .seconds(1))
            // A refused attempt costs nothing: the wait does not grow.
            for _ in 0..<20 { #expect(Self.signIn(client, "x", from: "192.0.2.1").retryAfter == .seconds(1)) }
            server.clock.advance(by: .seconds(1))
            #expect(Self.signIn(client, "x", from: "192.0.2.1").reason == "INVALID_LOGIN_CREDENTIALS")
            #expect(Self.signIn(client, "x", from: "192.0.2.1").retryAfter == .seconds(2))
            server.clock.advance(by: .seconds(2))
            #expect(Self.signIn(client, "correct horse", from: "192.0.2.1").reason == "")
            #expect(Self.signIn(client, "x", from: "192.0.2.1").reason == "INVALID_LOGIN_CREDENTIALS")
        }
    }

    @Test func whoGuessesElsewhereDoesNotMakeTheOwnerWait() async throws {
        try await withServer { server in
            _ = try IdentityClient(server).signUp("ada@example.com")
            let client = try Self.client(server, trusted: true)
            #expect(Self.signIn(client, "correct horse", from: "192.0.2.1").reason == "")
            var reasons: Set<String> = []
            for index in 0..<120 { reasons.insert(Self.signIn(client, "x", from: Text("198.51.100.\(index)")).reason) }
            #expect(reasons == ["INVALID_LOGIN_CREDENTIALS", "TOO_MANY_ATTEMPTS_TRY_LATER"])
            #expect(
                Self.signIn(client, "correct horse", from: "198.51.100.200").reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
            #expect(Self.signIn(client, "correct horse", from: "192.0.2.1").reason == "")
        }
    }

    @Test func anUnknownEmailIsThrottledLikeAKnownOne() async throws {
        try await withServer { server in
            let client = try Self.client(server, trusted: true)
            let reasons = (0..<8).map { _ in Self.signIn(client, "x", from: "192.0.2.1", email: "no@example.com").reason
            }
            #expect(reasons.first == "INVALID_LOGIN_CREDENTIALS" && reasons.last == "TOO_MANY_ATTEMPTS_TRY_LATER")
        }
    }

    @Test func addressesAreBelievedOnlyFromCredentialsMarkedForIt() async throws {
        try await withServer { server in
            _ = try IdentityClient(server).signUp("ada@example.com")
            let client = try Self.client(server, trusted: false)
            let reasons = (0..<8).map { Self.signIn(client, "x", from: Text("192.0.2.\($0)")).reason }
            #expect(reasons.last == "TOO_MANY_ATTEMPTS_TRY_LATER")
        }
    }

    @Test func tryingOutAListOfEmailsBySigningUpIsThrottled() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let reasons = (0..<8).map { _ in failure { _ = try client.signUp("ada@example.com") }.reason }
            #expect(reasons.first == "EMAIL_EXISTS" && reasons.last == "TOO_MANY_ATTEMPTS_TRY_LATER")
        }
    }

    // MARK: Changing and deleting

    static func update(
        _ client: IdentityClient, _ idToken: Text, _ paths: [Text], _ change: (inout AccountsUpdateRequest) -> Void
    ) throws -> AccountsUpdateResponse {
        var request = AccountsUpdateRequest(idToken: idToken, updateMask: ProtobufFieldMask(paths: paths))
        change(&request)
        return try client.client.call("postern.v1.Accounts/Update", request)
    }

    @Test func aPasswordChangeSignsEveryOtherSessionOut() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let first = try client.signUp("ada@example.com")
            let other = try client.signIn("ada@example.com")
            let changed = try Self.update(client, first.tokens!.idToken, ["password"]) {
                $0.password = Secret([UInt8]("another horse".utf8))
            }
            let tokens = try #require(changed.tokens)
            for old in [first.tokens!.idToken, other.tokens!.idToken] {
                expectRefusal("TOKEN_EXPIRED") { _ = try client.lookup(old) }
            }
            let refused = failure { _ = try client.refresh(other.tokens!.refreshToken) }
            #expect(refused.reason == "TOKEN_EXPIRED" && refused.metadata("cause") == "PASSWORD_CHANGED")
            #expect(try client.lookup(tokens.idToken).uid == first.user?.uid)
            #expect(try client.refresh(tokens.refreshToken).uid == first.user?.uid)
            expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn("ada@example.com") }
            _ = try client.signIn("ada@example.com", password: "another horse")
        }
    }

    @Test func theEmailIsChangedDirectlyOnlyWithoutEnumerationProtection() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let other = try client.signIn("ada@example.com")
            _ = try client.signUp("taken@example.com")
            func change(_ email: Text) -> (String, TokenPair?) {
                var tokens: TokenPair?
                let refused = failure {
                    tokens = try Self.update(client, made.tokens!.idToken, ["email"]) { $0.email = email }.tokens
                }
                return (refused.reason, tokens)
            }
            #expect(change("new@example.com").0 == "OPERATION_NOT_ALLOWED")
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            #expect(change("TAKEN@example.com").0 == "EMAIL_EXISTS")
            #expect(change("nonsense").0 == "INVALID_EMAIL")
            #expect(try client.mails().isEmpty)
            // Only a verified address gets a mail with a recovery code.
            try client.update(made.user!.uid, ["email_verified"]) { $0.emailVerified = true }
            let (reason, tokens) = change("new@example.com")
            #expect(reason == "")
            let user = try client.lookup(try #require(tokens).idToken)
            #expect(user.email == "new@example.com" && !user.emailVerified)
            let refused = failure { _ = try client.refresh(other.tokens!.refreshToken) }
            #expect(refused.metadata("cause") == "SIGNED_OUT")
            let recovery = try #require(try client.mails().first)
            #expect(recovery.message.to == "ada@example.com" && recovery.message.requestType == .recoverEmail)
            #expect(try client.applyOob(recovery.code).email == "ada@example.com")
        }
    }

    @Test func aProfileChangeTouchesTheMaskedFieldsOnly() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try client.signUp("ada@example.com").tokens!.idToken
            let named = try Self.update(client, idToken, ["display_name"]) {
                $0.displayName = "Ada"
                $0.photoURL = "https://example.com/ada"
            }
            #expect(named.user?.displayName == "Ada" && named.user?.photoURL.isEmpty == true && named.tokens == nil)
            let tried = try Self.update(client, idToken, ["photo_url"]) {
                $0.photoURL = "https://example.com/ada"
                $0.validateOnly = true
            }
            #expect(tried.user?.photoURL == "https://example.com/ada")
            #expect(try client.lookup(idToken).photoURL.isEmpty)
            for (paths, reason) in [
                ([], "INVALID_UPDATE_MASK"), (["email_verified"], "INVALID_UPDATE_MASK"),
                (["display_name", "display_name"], "INVALID_UPDATE_MASK"), (["password"], "WEAK_PASSWORD"),
            ] as [([Text], String)] {
                expectRefusal(reason) { _ = try Self.update(client, idToken, paths) { _ in } }
            }
        }
    }

    @Test func sensitiveChangesNeedARecentLogin() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try client.signUp("ada@example.com").tokens!.idToken
            func delete() -> String {
                failure {
                    let _: AccountsDeleteResponse = try client.client.call(
                        "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: idToken, validateOnly: true))
                }.reason
            }
            func change() -> String {
                failure {
                    _ = try Self.update(client, idToken, ["password"]) {
                        $0.password = Secret([UInt8]("another horse".utf8))
                        $0.validateOnly = true
                    }
                }.reason
            }
            server.clock.advance(by: .seconds(300))
            #expect([delete(), change()] == ["", ""])
            server.clock.advance(by: .seconds(1))
            #expect([delete(), change()] == Array(repeating: "CREDENTIAL_TOO_OLD_LOGIN_AGAIN", count: 2))
            try client.setTenant(["recent_login_seconds"]) { $0.recentLoginSeconds = 600 }
            #expect([delete(), change()] == ["", ""])
        }
    }

    @Test func aDeletedAccountLeavesNothingBehind() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let _: AccountsDeleteResponse = try client.client.call(
                "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: made.tokens!.idToken))
            expectRefusal("USER_NOT_FOUND") { _ = try client.lookup(made.tokens!.idToken) }
            expectRefusal("TOKEN_EXPIRED", cause: "SIGNED_OUT") { _ = try client.refresh(made.tokens!.refreshToken) }
            #expect(try client.signUp("ada@example.com").user?.uid != made.user?.uid)
        }
    }
}
