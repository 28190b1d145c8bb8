import Base
import Messages
import TestSupport
import Testing
import Wire

/// idempotency-key: a change that is asked for twice is made once.
@Suite struct IdempotencyTests {
    private func key(_ text: Text) -> [OutgoingMetadata.Entry] {
        [OutgoingMetadata.Entry(key: "idempotency-key", value: text)]
    }

    @Test func aRepeatedCreateGivesTheSameUserAgain() async throws {
        try await withServer { server in
            let client = try server.connect()
            let request = UsersCreateRequest(email: "ann@example.com")
            let first = try client.call(
                "postern.v1.Users/Create", request, returning: UsersCreateResponse.self, metadata: key("k1"))
            let again = try client.call(
                "postern.v1.Users/Create", request, returning: UsersCreateResponse.self, metadata: key("k1"))
            #expect(first == again)
            let list = try client.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)
            #expect(list.users.count == 1)
        }
    }

    @Test func anotherRequestUnderTheSameKeyIsRefused() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try client.call(
                "postern.v1.Users/Create", UsersCreateRequest(email: "ann@example.com"),
                returning: UsersCreateResponse.self, metadata: key("k1"))
            let failure = #expect(throws: Failure.self) {
                try client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(email: "bob@example.com"),
                    returning: UsersCreateResponse.self, metadata: key("k1"))
            }
            #expect(failure?.reason == "IDEMPOTENCY_KEY_REUSED")
        }
    }

    @Test func aFailedRequestLeavesItsKeyFree() async throws {
        try await withServer { server in
            let client = try server.connect()
            let request = UsersCreateRequest(uid: "u1", email: "ann@example.com")
            _ = try client.call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: "u1"), returning: UsersCreateResponse.self)
            #expect(throws: Failure.self) {
                try client.call(
                    "postern.v1.Users/Create", request, returning: UsersCreateResponse.self, metadata: key("k1"))
            }
            _ = try client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: "u1"), returning: UsersDeleteResponse.self)
            let made = try client.call(
                "postern.v1.Users/Create", request, returning: UsersCreateResponse.self, metadata: key("k1"))
            #expect(made.user?.uid == "u1")
        }
    }

    @Test func aLostSignUpGetsTokensOfTheSameSessionUntilTheyAreUsed() async throws {
        try await withServer { server in
            let client = try server.connect()
            let request = AccountsSignUpRequest(email: "ann@example.com", password: Secret("secret1"))
            let first = try client.call(
                "postern.v1.Accounts/SignUp", request, returning: AccountsSignUpResponse.self, metadata: key("k1"))
            let again = try client.call(
                "postern.v1.Accounts/SignUp", request, returning: AccountsSignUpResponse.self, metadata: key("k1"))
            #expect(again.user?.uid == first.user?.uid)
            #expect(again.tokens?.refreshToken == first.tokens?.refreshToken)
            _ = try client.call(
                "postern.v1.Tokens/Refresh",
                TokensRefreshRequest(refreshToken: first.tokens?.refreshToken ?? .empty),
                returning: TokensRefreshResponse.self)
            let failure = #expect(throws: Failure.self) {
                try client.call(
                    "postern.v1.Accounts/SignUp", request, returning: AccountsSignUpResponse.self, metadata: key("k1"))
            }
            #expect(failure?.reason == "ALREADY_DONE")
        }
    }

    /// The toggle refuses to make users, and this one is made.
    @Test func aLostSignUpIsAnsweredAfterSignUpWasSwitchedOff() async throws {
        try await withServer { server in
            let client = try server.connect()
            try IdentityClient(server).setTenant(["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            func signUp(_ email: Text, _ name: Text) throws -> AccountsSignUpResponse {
                let password: Secret = email.isEmpty ? .empty : Secret("secret1")
                return try client.call(
                    "postern.v1.Accounts/SignUp", AccountsSignUpRequest(email: email, password: password),
                    metadata: key(name))
            }
            let (known, anonymous) = (try signUp("ann@example.com", "k1"), try signUp("", "k2"))
            try ToggleTests.set(client, signup: true, deletion: false)
            #expect(try signUp("ann@example.com", "k1").tokens?.refreshToken == known.tokens?.refreshToken)
            #expect(try signUp("", "k2").tokens?.refreshToken == anonymous.tokens?.refreshToken)
            let others: [(Text, Text)] = [("bob@example.com", "k1"), ("ann@example.com", "k3"), ("", "k4")]
            for (email, name) in others {
                expectRefusal("ADMIN_RESTRICTED_OPERATION", "\(name)") { _ = try signUp(email, name) }
            }
            let listed: TenantsListDenialsResponse = try client.call(
                "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest())
            #expect(listed.denials.count == others.count)
        }
    }

    /// An anonymous sign-up proves nothing: a caller who guesses its key must not be its user for the rest of the day.
    @Test func tokensAreGivenAgainForAnHour() async throws {
        try await withServer { server in
            let client = try server.connect()
            try IdentityClient(server).setTenant(["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            func signUp() throws -> AccountsSignUpResponse {
                try client.call(
                    "postern.v1.Accounts/SignUp", AccountsSignUpRequest(), returning: AccountsSignUpResponse.self,
                    metadata: key("k1"))
            }
            let first = try signUp()
            server.clock.advance(by: .hours(1))
            #expect(try signUp().user?.uid == first.user?.uid)
            server.clock.advance(by: .microseconds(1))
            expectRefusal("ALREADY_DONE") { _ = try signUp() }
        }
    }

    @Test func anAPIKeyIsToldOnlyOnce() async throws {
        try await withServer { server in
            let client = try server.connect()
            let request = ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .all(true)))
            _ = try client.call(
                "postern.v1.Project/CreateApiKey", request, returning: ProjectCreateApiKeyResponse.self,
                metadata: key("k1"))
            let failure = #expect(throws: Failure.self) {
                try client.call(
                    "postern.v1.Project/CreateApiKey", request, returning: ProjectCreateApiKeyResponse.self,
                    metadata: key("k1"))
            }
            #expect(failure?.reason == "ALREADY_DONE")
            let keys = try client.call(
                "postern.v1.Project/ListApiKeys", ProjectListApiKeysRequest(),
                returning: ProjectListApiKeysResponse.self)
            #expect(keys.apiKeys.count == 2)
        }
    }

    @Test func aSignInWhoseTokenWasUsedIsNotRepeatedThoughTheTokenStaysTheSame() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["refresh_mode"]) { $0.refreshMode = .reuse }
            func signUp() throws -> AccountsSignUpResponse {
                try client.client.call(
                    "postern.v1.Accounts/SignUp",
                    AccountsSignUpRequest(email: "ann@example.com", password: Secret("secret1")), metadata: key("k1"))
            }
            let first = try signUp()
            #expect(try signUp().tokens?.refreshToken == first.tokens?.refreshToken)
            server.clock.advance(by: .seconds(1))
            _ = try client.refresh(first.tokens!.refreshToken)
            expectRefusal("ALREADY_DONE") { _ = try signUp() }
        }
    }

    @Test func whatADeletionOrASettingRepeatedWouldAnswerOtherwiseIsAnsweredAlike() async throws {
        try await withServer { server in
            let client = try server.connect()
            func twice<Answer: Message>(_ method: String, _ request: some Message) throws -> Answer {
                let first: Answer = try client.call(method, request, metadata: key("k1"))
                server.clock.advance(by: .seconds(1))
                let again: Answer = try client.call(method, request, metadata: key("k1"))
                #expect(again == first)
                return again
            }
            let _: ProvidersCreateResponse = try client.call(
                "postern.v1.Providers/Create",
                ProvidersCreateRequest(provider: Provider(providerID: "google.com", clientID: "shop")))
            let _: ProvidersDeleteResponse = try twice(
                "postern.v1.Providers/Delete", ProvidersDeleteRequest(providerID: "google.com"))
            let _: TenantsCreateResponse = try client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let _: TenantsDeleteResponse = try twice(
                "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "acme"))
            let configured: EmailConfigsUpdateResponse = try twice(
                "postern.v1.EmailConfigs/Update",
                EmailConfigsUpdateRequest(
                    config: EmailConfig(
                        delivery: .smtp, smtp: SmtpConfig(host: "127.0.0.1", port: 1, security: .none),
                        senderAddress: "no-reply@example.com", allowPrivateAddresses: true),
                    updateMask: ProtobufFieldMask(
                        paths: ["delivery", "smtp", "sender_address", "allow_private_addresses"])))
            #expect(configured.config?.revision == 1)

            // No mail server takes this mail, so it waits.
            let _: UsersCreateResponse = try client.call(
                "postern.v1.Users/Create", UsersCreateRequest(email: "ann@example.com"))
            let _: AccountsSendOobCodeResponse = try client.call(
                "postern.v1.Accounts/SendOobCode",
                AccountsSendOobCodeRequest(requestType: .passwordReset, email: "ann@example.com"))
            let listed: OutboxListResponse = try client.call("postern.v1.Outbox/List", OutboxListRequest())
            let id = try #require(listed.messages.first).messageID
            let _: OutboxRetryResponse = try twice("postern.v1.Outbox/Retry", OutboxRetryRequest(messageID: id))
            let _: OutboxDeleteResponse = try twice("postern.v1.Outbox/Delete", OutboxDeleteRequest(messageID: id))
        }
    }

    /// Five mails are the budget of the mailbox.
    @Test func `A mail that is asked for again with its key is sent and counted once`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            func send(_ name: Text, to email: Text = "Ada@Example.com") throws -> AccountsSendOobCodeResponse {
                try client.client.call(
                    "postern.v1.Accounts/SendOobCode",
                    AccountsSendOobCodeRequest(requestType: .passwordReset, email: email), metadata: key(name))
            }
            let first = try send("k0")
            #expect(first.email == "Ada@Example.com")
            for _ in 0..<6 { #expect(try send("k0") == first) }
            for number in 1..<5 { #expect(try send(Text("k\(number)")) == first) }
            expectRefusal("TOO_MANY_ATTEMPTS_TRY_LATER") { _ = try send("k5") }
            #expect(try send("k4") == first)
            expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try send("k4", to: "bob@example.com") }
            #expect(try client.mails().count == 5)
        }
    }

    // MARK: Keys

    @Test func aKeyIsRevokedOnce() async throws {
        try await withServer { server in
            let client = try server.connect()
            func make() throws -> Text {
                let made: ProjectCreateApiKeyResponse = try client.call(
                    "postern.v1.Project/CreateApiKey",
                    ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .all(true))))
                return made.apiKey?.apiKeyID ?? .empty
            }
            func revoke(_ id: Text) throws -> ProjectRevokeApiKeyResponse {
                try client.call(
                    "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: id), metadata: key("k1"))
            }
            let (one, other) = (try make(), try make())
            let first = try revoke(one)
            server.clock.advance(by: .seconds(1))
            #expect(try revoke(one) == first)
            expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try revoke(other) }
        }
    }

    @Test func aLostRotationMakesOneSigningKey() async throws {
        try await withServer { server in
            let client = try server.connect()
            func rotate(ahead: Int64) throws -> ProjectRotateSigningKeyResponse {
                try client.call(
                    "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest(publishAheadSeconds: ahead),
                    metadata: key("k1"))
            }
            func keyIDs() throws -> [Text] {
                let listed: ProjectListSigningKeysResponse = try client.call(
                    "postern.v1.Project/ListSigningKeys", ProjectListSigningKeysRequest())
                return listed.keys.filter { $0.tokenUse == .idToken }.map(\.keyID)
            }
            let first = try rotate(ahead: 60)
            #expect(first.key?.state == .published)
            server.clock.advance(by: .seconds(100))
            #expect(try rotate(ahead: 60) == first)
            #expect(try keyIDs().count == 2 && keyIDs().contains(first.key?.keyID ?? .empty))
            expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try rotate(ahead: 0) }
            #expect(try keyIDs().count == 2)
        }
    }
}
