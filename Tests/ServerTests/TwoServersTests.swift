import Base
import Identity
import Messages
import TestSupport
import Testing

/// Two nodes of a cluster: what one acknowledged, the other neither denies nor undoes.
@Suite struct TwoServersTests {
    private func get(_ client: IdentityClient, email: Text) throws -> User {
        let found: UsersGetByEmailResponse = try client.client.call(
            "postern.v1.Users/GetByEmail", UsersGetByEmailRequest(email: email))
        return try #require(found.user)
    }

    @Test func aUserOfOneNodeIsKnownToTheOtherAtOnce() async throws {
        try await withTwoServers { first, second in
            let (one, two) = (try IdentityClient(first), try IdentityClient(second))
            for number in 0..<30 {
                let email = Text("user\(number)@example.com")
                let (here, there) = number % 2 == 0 ? (one, two) : (two, one)
                _ = try here.signUp(email)
                #expect(try get(there, email: email).email == email)
                _ = try there.signIn(email)
            }
        }
    }

    @Test func anEmailIsTakenOnAllNodes() async throws {
        try await withTwoServers { first, second in
            let (one, two) = (try IdentityClient(first), try IdentityClient(second))
            for number in 0..<20 {
                let email = Text("user\(number)@example.com")
                _ = try one.signUp(email)
                expectRefusal("EMAIL_EXISTS") { _ = try two.signUp(email) }
            }
        }
    }

    @Test func aSessionGoesOnWithAnyNode() async throws {
        try await withTwoServers { first, second in
            let (one, two) = (try IdentityClient(first), try IdentityClient(second))
            let signedUp = try one.signUp("ada@example.com")
            var token = try #require(signedUp.tokens).refreshToken
            for round in 0..<20 {
                let client = round % 2 == 0 ? two : one
                let answer: TokensRefreshResponse = try client.client.call(
                    "postern.v1.Tokens/Refresh", TokensRefreshRequest(refreshToken: token))
                let tokens = try #require(answer.tokens)
                let verified: TokensVerifyIdTokenResponse = try (round % 2 == 0 ? one : two).client.call(
                    "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: tokens.idToken))
                #expect(verified.uid == signedUp.user?.uid)
                token = tokens.refreshToken
            }
            // Every node refuses refresh tokens that were used.
            let stale = try #require(signedUp.tokens).refreshToken
            first.clock.advance(by: .seconds(11))
            expectRefusal("TOKEN_EXPIRED") {
                let _: TokensRefreshResponse = try two.client.call(
                    "postern.v1.Tokens/Refresh", TokensRefreshRequest(refreshToken: stale))
            }
        }
    }

    /// Two tabs refresh at once, each through another node. That is no reuse, although the clock of one node is behind.
    @Test func theGraceOfARefreshTokenHoldsOnANodeWhoseClockIsBehind() async throws {
        let clocks = (ManualClock(), ManualClock(startingAt: ManualClock().clock.now() - .seconds(3)))
        try await withTwoNodes(clock: clocks.0, secondClock: clocks.1) { nodes in
            let (one, two) = (try IdentityClient(nodes.first), try IdentityClient(nodes.second))
            let token = try #require(try one.signUp("ada@example.com").tokens).refreshToken
            let successor = try #require(try one.refresh(token).tokens).refreshToken
            #expect(try two.refresh(token).tokens?.refreshToken == successor)
            _ = try one.refresh(successor)
        }
    }

    @Test func aSwitchThrownOnOneNodeBindsTheNextCallOnTheOther() async throws {
        try await withTwoServers { first, second in
            let (one, two) = (try IdentityClient(first), try IdentityClient(second))
            let _: TenantsCreateResponse = try one.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            for round in 0..<15 {
                let isOn = round % 2 == 1
                let _: TenantsUpdateResponse = try one.client.call(
                    "postern.v1.Tenants/Update",
                    TenantsUpdateRequest(
                        tenantID: "acme",
                        tenant: Messages.Tenant(
                            client: ClientConfig(permissions: ClientPermissions(disabledUserSignup: !isOn))),
                        updateMask: ProtobufFieldMask(paths: ["client.permissions.disabled_user_signup"])))
                let request = AccountsSignUpRequest(
                    tenantID: "acme", email: Text("user\(round)@example.com"), password: Secret("correct horse"))
                if isOn {
                    let _: AccountsSignUpResponse = try two.client.call("postern.v1.Accounts/SignUp", request)
                } else {
                    expectRefusal("ADMIN_RESTRICTED_OPERATION") {
                        let _: AccountsSignUpResponse = try two.client.call("postern.v1.Accounts/SignUp", request)
                    }
                }
            }
        }
    }

    @Test func nodesTellWhereTheyStandAndWhatTheyHold() async throws {
        try await withTwoServers { first, second in
            let clients = (try IdentityClient(first).client, try IdentityClient(second).client)
            func digest(_ client: RawClient) throws -> ProjectDigestStoreResponse {
                try client.call(
                    "postern.v1.Project/DigestStore", ProjectDigestStoreRequest(),
                    returning: ProjectDigestStoreResponse.self)
            }
            let before = try digest(clients.0)
            #expect(try digest(clients.1) == before)
            _ = try IdentityClient(second).signUp("ada@example.com")
            let after = try digest(clients.0)
            #expect(after.position > before.position && after.tables != before.tables)
            #expect(try digest(clients.1) == after)
            let status = try clients.0.call(
                "postern.v1.Project/GetClusterStatus", ProjectGetClusterStatusRequest(),
                returning: ProjectGetClusterStatusResponse.self)
            #expect(status.inCluster && status.connected && status.trouble == "")
            #expect(status.clusterID == after.clusterID && status.position == after.position)
            #expect(status.endSeenAtMicros > 0)
        }
    }

    @Test func guessesOfAPasswordCountOnAllNodes() async throws {
        try await withTwoServers { first, second in
            let (one, two) = (try IdentityClient(first), try IdentityClient(second))
            _ = try one.signUp("ada@example.com")
            // Five are free, and the sixth is the last one before there is a wait.
            for number in 0..<6 {
                let (server, client) = number % 2 == 0 ? (first, one) : (second, two)
                expectRefusal("INVALID_LOGIN_CREDENTIALS") {
                    _ = try client.signIn("ada@example.com", password: "wrong horse")
                }
                await server.project.guesses.save()
            }
            for client in [one, two] {
                expectRefusal("TOO_MANY_ATTEMPTS_TRY_LATER") { _ = try client.signIn("ada@example.com") }
            }
            first.clock.advance(by: .seconds(2))
            _ = try two.signIn("ada@example.com")
            await second.project.guesses.save()
            _ = try one.signIn("ada@example.com")
        }
    }

    @Test func aListOfATenantThatAnotherNodeMadeIsNotRefused() async throws {
        try await withTwoServers { first, second in
            let (here, there) = (try first.connect(), try second.connect())
            for number in 0..<5 {
                let tenant = Text("tenant-\(number)")
                let _: TenantsCreateResponse = try here.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenant))
                let listed: UsersListResponse = try there.call(
                    "postern.v1.Users/List", UsersListRequest(tenantID: tenant, pageSize: 10))
                #expect(listed.users.isEmpty)
            }
            expectRefusal("TENANT_NOT_FOUND") {
                let _: UsersListResponse = try there.call(
                    "postern.v1.Users/List", UsersListRequest(tenantID: "nowhere", pageSize: 10))
            }
        }
    }

    @Test func aWatchGoesOnBehindAnEventThatAnotherNodeTold() async throws {
        try await withTwoServers { first, second in
            let here = try first.connect()
            let _: TenantsCreateResponse = try here.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            for sequence in 1...3 as ClosedRange<Int64> {
                let _: UsersCreateResponse = try here.call(
                    "postern.v1.Users/Create", UsersCreateRequest(tenantID: "acme", uid: Text("u\(sequence)")))
                // Nobody has told the second node of the events.
                let watch = try RawStream<AuditWatchEventsResponse>(
                    second, "postern.v1.Audit/WatchEvents",
                    AuditWatchEventsRequest(tenantID: "acme", afterSequence: sequence))
                #expect(try watch.next()?.event?.sequence == sequence + 1)
            }
        }
    }

    @Test func aKeyMadeOnOneNodeCallsTheOtherAtOnce() async throws {
        try await withTwoServers { first, second in
            let one = try IdentityClient(first)
            for _ in 0..<10 {
                let made: ProjectCreateApiKeyResponse = try one.client.call(
                    "postern.v1.Project/CreateApiKey",
                    ProjectCreateApiKeyRequest(role: .projectAdmin, scope: Scope(tenants: .all(true))))
                let stranger = try second.connect(authenticated: false)
                stranger.apiKey = made.secretKey
                let info: ProjectServerInfoResponse = try stranger.call(
                    "postern.v1.Project/ServerInfo", ProjectServerInfoRequest())
                #expect(info.projectID == "test")
            }
        }
    }
}
