import Base
import Crypto
import Identity
import JSON
import Messages
import Store
import TestSupport
import Testing
import Wire

/// Users.CreateCustomToken: tokens of the project's built-in service account.
@Suite struct CustomTokenMintTests {
    private func mint(
        _ client: RawClient, uid: Text = "u1", claims: String = "", tenantID: Text = .empty, lifetime: Int64 = 0,
        metadata: [OutgoingMetadata.Entry] = []
    ) throws -> Text {
        let made: UsersCreateCustomTokenResponse = try client.call(
            "postern.v1.Users/CreateCustomToken",
            UsersCreateCustomTokenRequest(
                tenantID: tenantID, uid: uid, claimsJSON: [UInt8](claims.utf8), lifetimeSeconds: lifetime),
            metadata: metadata)
        return made.customToken.withBytes { Text(unchecked: [UInt8]($0)) }
    }

    private func signIn(
        _ client: RawClient, _ token: Text, tenantID: Text = .empty
    ) throws -> AccountsSignInWithCustomTokenResponse {
        try client.call(
            "postern.v1.Accounts/SignInWithCustomToken",
            AccountsSignInWithCustomTokenRequest(tenantID: tenantID, token: Secret(token.bytes)))
    }

    private func builtInKeys(_ client: RawClient) throws -> [ServiceAccountKey] {
        let listed: ProjectListServiceAccountKeysResponse = try client.call(
            "postern.v1.Project/ListServiceAccountKeys",
            ProjectListServiceAccountKeysRequest(serviceAccountID: "postern"))
        return listed.keys
    }

    @Test func aMintedTokenSignsInOnceWithItsClaimsInItsTenant() async throws {
        try await withServer { server in
            let client = try server.connect()
            let _: TenantsCreateResponse = try client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let token = try mint(client, claims: #"{"plan":"gold"}"#, tenantID: "acme")
            let refused = failure { _ = try signIn(client, token) }
            #expect(refused.reason == "TENANT_ID_MISMATCH" && refused.metadata("tenant") == "acme")
            #expect(refused.message == "The token is of tenant \"acme\"; the request is for the default pool.")
            let signedIn = try signIn(client, token, tenantID: "acme")
            #expect(signedIn.isNewUser && signedIn.user?.uid == "u1" && signedIn.user?.tenantID == "acme")
            #expect(claims(of: signedIn.tokens?.idToken ?? .empty)["plan"] == "gold")
            expectRefusal("INVALID_CUSTOM_TOKEN", cause: "USED") { _ = try signIn(client, token, tenantID: "acme") }
            _ = try signIn(client, try mint(client, tenantID: "acme"), tenantID: "acme")
        }
    }

    @Test func itsLifetimeIsAsAskedAndAnHourAtMost() async throws {
        try await withServer { server in
            let client = try server.connect()
            let brief = try mint(client, lifetime: 1)
            let whole = try mint(client)
            server.clock.advance(by: .seconds(1))
            expectRefusal("INVALID_CUSTOM_TOKEN", cause: "EXPIRED") { _ = try signIn(client, brief) }
            let claims = claims(of: whole)
            #expect((claims["exp"]?.integer ?? 0) - (claims["iat"]?.integer ?? 0) == 3_600)
            _ = try mint(client, lifetime: 3_600)
            for lifetime in [-1, 3_601, Int64.min, Int64.max] {
                expectRefusal("INVALID_DURATION") { _ = try mint(client, lifetime: lifetime) }
            }
        }
    }

    @Test func whatATokenMustNotSayIsNotMinted() async throws {
        try await withServer { server in
            let client = try server.connect()
            let long = String(repeating: "u", count: 129)
            expectRefusal("INVALID_UID") { _ = try mint(client, uid: "") }
            expectRefusal("INVALID_UID") { _ = try mint(client, uid: Text(long)) }
            expectRefusal("INVALID_CLAIMS") { _ = try mint(client, claims: "[]") }
            expectRefusal("FORBIDDEN_CLAIM") { _ = try mint(client, claims: #"{"sub":"x"}"#) }
            let large = #"{"x":""# + String(repeating: "x", count: 993) + #""}"#
            expectRefusal("CLAIMS_TOO_LARGE") { _ = try mint(client, claims: large) }
            let dry: UsersCreateCustomTokenResponse = try client.call(
                "postern.v1.Users/CreateCustomToken", UsersCreateCustomTokenRequest(uid: "u1", validateOnly: true))
            #expect(dry.customToken.isEmpty && dry.expiresAtMicros > 0)
            #expect(try builtInKeys(client).isEmpty)
        }
    }

    @Test func everyMintingIsInTheEventLogAndIsNotRepeated() async throws {
        try await withServer { server in
            let client = try server.connect()
            let key = [OutgoingMetadata.Entry(key: "idempotency-key", value: "k1")]
            _ = try mint(client, metadata: key)
            expectRefusal("ALREADY_DONE") { _ = try mint(client, metadata: key) }
            let minted = try server.project.store.read { transaction in
                var uids: [Text] = []
                try transaction.scanEvents(tenant: .empty) { stored in
                    let event = try EventRecord(decoding: stored.payload)
                    if event.kind == .customTokenCreated, !event.actor.isEmpty { uids.append(event.uid) }
                    return true
                }
                return uids
            }
            #expect(minted == ["u1"])
        }
    }

    @Test func theBuiltInKeyIsMadeOnceSealedAndReplacedWhenRevoked() async throws {
        try await withTemporaryDirectory { directory in
            let clock = ManualClock()
            let masterKey = MasterKey.generate(random: .system)
            let (before, adminKey) = try await withServer(directory: directory, clock: clock, masterKey: masterKey) {
                let client = try $0.connect()
                #expect(try builtInKeys(client).isEmpty)
                let tokens = [try mint(client), try mint(client)]
                #expect(try builtInKeys(client).count == 1)
                return (tokens, $0.adminKey)
            }
            try await withServer(directory: directory, clock: clock, masterKey: masterKey, adminKey: adminKey) {
                let client = try $0.connect()
                _ = try signIn(client, before[0])
                _ = try signIn(client, try mint(client))
                let keys = try builtInKeys(client)
                #expect(keys.count == 1)
                let _: ProjectRevokeServiceAccountKeyResponse = try client.call(
                    "postern.v1.Project/RevokeServiceAccountKey",
                    ProjectRevokeServiceAccountKeyRequest(
                        serviceAccountID: "postern", keyID: keys.first?.keyID ?? .empty))
                expectRefusal("INVALID_CUSTOM_TOKEN", cause: "NOT_AUTHENTIC") { _ = try signIn(client, before[1]) }
                _ = try signIn(client, try mint(client))
                #expect(try builtInKeys(client).count == 2)
            }
        }
    }

    @Test func theBuiltInAccountCannotBeChangedAndCallsNothing() async throws {
        try await withServer { server in
            let client = try server.connect()
            let change = ProjectUpdateServiceAccountRequest(
                serviceAccountID: "postern", updateMask: ProtobufFieldMask(paths: ["role"]), role: .projectAdmin)
            let refused: [() throws -> Void] = [
                {
                    _ = try client.call(
                        "postern.v1.Project/UpdateServiceAccount", change,
                        returning: ProjectUpdateServiceAccountResponse.self)
                },
                {
                    _ = try client.call(
                        "postern.v1.Project/DeleteServiceAccount",
                        ProjectDeleteServiceAccountRequest(serviceAccountID: "postern"),
                        returning: ProjectDeleteServiceAccountResponse.self)
                },
                {
                    _ = try client.call(
                        "postern.v1.Project/CreateServiceAccountKey",
                        ProjectCreateServiceAccountKeyRequest(serviceAccountID: "postern"),
                        returning: ProjectCreateServiceAccountKeyResponse.self)
                },
                {
                    _ = try client.call(
                        "postern.v1.Project/UploadServiceAccountKey",
                        ProjectUploadServiceAccountKeyRequest(
                            serviceAccountID: "postern", publicKey: spkiPEM(newKeyPair())),
                        returning: ProjectUploadServiceAccountKeyResponse.self)
                },
            ]
            for call in refused { #expect(failure(call).reason == "BUILT_IN_SERVICE_ACCOUNT") }
        }
    }
}
