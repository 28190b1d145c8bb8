import Base
import Messages
import Service
import TestSupport
import Testing

/// Users.Update changes everything of a user at once, or nothing; Users.BatchDelete deletes many.
@Suite struct CombinedUpdateTests {
    private static func update(_ client: RawClient, _ request: UsersUpdateRequest, _ paths: [Text]) throws -> User {
        var request = request
        request.updateMask = ProtobufFieldMask(paths: paths)
        let answer: UsersUpdateResponse = try client.call("postern.v1.Users/Update", request)
        return answer.user ?? User()
    }

    private static func get(_ client: RawClient, _ uid: Text) throws -> User {
        let answer: UsersGetResponse = try client.call("postern.v1.Users/Get", UsersGetRequest(uid: uid))
        return answer.user ?? User()
    }

    private static let everything: [Text] = [
        "email", "email_verified", "password", "display_name", "photo_url", "phone_number", "disabled",
        "custom_claims_json", "link_providers", "unlink_provider_ids", "revoke_tokens",
    ]

    private static func change(of uid: Text) -> UsersUpdateRequest {
        UsersUpdateRequest(
            uid: uid, email: "new@example.com", emailVerified: true, password: Secret("correct horse 2"),
            displayName: "Ada", photoURL: "https://example.com/a.png", phoneNumber: "+14155550101",
            customClaimsJSON: [UInt8](#"{"role":"editor","email":"x"}"#.utf8),
            linkProviders: [ProviderInfo(providerID: "google.com", rawID: "g-2")], unlinkProviderIDs: ["google.com"],
            revokeTokens: true)
    }

    @Test func `Everything of a user is changed at once`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try #require(try client.signUp("ada@example.com").tokens)
            let raw = client.client
            let found: UsersGetByEmailResponse = try raw.call(
                "postern.v1.Users/GetByEmail", UsersGetByEmailRequest(email: "ada@example.com"))
            let uid = try #require(found.user?.uid)
            let linked = try Self.update(
                raw,
                UsersUpdateRequest(uid: uid, linkProviders: [ProviderInfo(providerID: "google.com", rawID: "g-1")]),
                ["link_providers"])
            #expect(linked.providers.map(\.rawID).contains("g-1"))
            var request = Self.change(of: uid)
            request.updateMask = ProtobufFieldMask(paths: Self.everything)
            let answer: UsersUpdateResponse = try raw.call("postern.v1.Users/Update", request)
            let user = try #require(answer.user)
            #expect(try Self.get(raw, uid) == user)
            #expect(user.email == "new@example.com" && user.emailVerified && user.displayName == "Ada")
            #expect(user.phoneNumber == "+14155550101" && !user.disabled)
            #expect(Set(user.providers.map(\.rawID)) == ["g-2", "new@example.com", "+14155550101"])
            #expect(answer.ignoredClaims == ["email"])
            #expect(failure { _ = try client.refresh(tokens.refreshToken) }.reason == "TOKEN_EXPIRED")
            _ = try client.signIn("new@example.com", password: "correct horse 2")
            // The identity that was unlinked is free.
            let other: UsersCreateResponse = try raw.call("postern.v1.Users/Create", UsersCreateRequest(uid: "other"))
            #expect(other.user?.uid == "other")
            _ = try Self.update(
                raw,
                UsersUpdateRequest(uid: "other", linkProviders: [ProviderInfo(providerID: "google.com", rawID: "g-1")]),
                ["link_providers"])
        }
    }

    private static func github(_ rawID: Text) -> ProviderInfo { ProviderInfo(providerID: "github.com", rawID: rawID) }

    private static let spoilt: [(String, @Sendable (inout UsersUpdateRequest) -> Void)] = [
        ("INVALID_EMAIL", { $0.email = "x" }), ("EMAIL_EXISTS", { $0.email = "BOB@example.com" }),
        ("PHONE_NUMBER_EXISTS", { $0.phoneNumber = "+14155550199" }),
        ("WEAK_PASSWORD", { $0.password = Secret("12345") }),
        ("INVALID_CLAIMS", { $0.customClaimsJSON = [0x5B] }),
        ("FORBIDDEN_CLAIM", { $0.customClaimsJSON = [UInt8](#"{"sub":1}"#.utf8) }),
        ("INVALID_PROVIDER", { $0.linkProviders = [ProviderInfo(providerID: "phone", rawID: "1")] }),
        ("FEDERATED_USER_ID_ALREADY_LINKED", { $0.linkProviders = [github("b")] }),
        ("PROVIDER_ALREADY_LINKED", { $0.linkProviders = [github("1"), github("2")] }),
        ("NO_SUCH_PROVIDER", { $0.unlinkProviderIDs = ["apple.com"] }),
        ("NO_SUCH_PROVIDER", { $0.unlinkProviderIDs = ["google.com", "google.com"] }),
        (
            "TOO_MANY_ITEMS",
            { $0.linkProviders = (0..<21).map { ProviderInfo(providerID: Text("p\($0)"), rawID: "1") } }
        ),
        ("TOO_MANY_ITEMS", { $0.unlinkProviderIDs = (0..<21).map { Text("p\($0)") } }),
        ("USER_NOT_FOUND", { $0.uid = "nobody" }),
    ]

    @Test func `When one field is refused nothing is changed`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for (uid, phone) in [("ada", ""), ("bob", "+14155550199")] as [(Text, Text)] {
                let _: UsersCreateResponse = try client.call(
                    "postern.v1.Users/Create",
                    UsersCreateRequest(uid: uid, email: Text("\(uid)@example.com"), phoneNumber: phone))
            }
            _ = try Self.update(
                client,
                UsersUpdateRequest(uid: "bob", linkProviders: [ProviderInfo(providerID: "github.com", rawID: "b")]),
                ["link_providers"])
            let before = try Self.get(client, "ada")
            for (reason, spoil) in Self.spoilt {
                var request = Self.change(of: "ada")
                request.unlinkProviderIDs = []
                spoil(&request)
                expectRefusal(reason) { _ = try Self.update(client, request, Self.everything) }
                #expect(try Self.get(client, "ada") == before, "\(reason)")
            }
            for paths in [[], ["uid"], ["created_at_micros"], ["link_providers.raw_id"], ["email", "email"]] as [[Text]]
            {
                expectRefusal("INVALID_UPDATE_MASK") { _ = try Self.update(client, Self.change(of: "ada"), paths) }
            }
            var request = Self.change(of: "ada")
            request.unlinkProviderIDs = []
            request.validateOnly = true
            #expect(try Self.update(client, request, Self.everything).email == "new@example.com")
            #expect(try Self.get(client, "ada") == before)
            // As many as there may be.
            request = UsersUpdateRequest(
                uid: "ada", linkProviders: (0..<20).map { ProviderInfo(providerID: Text("p\($0)"), rawID: "1") })
            #expect(try Self.update(client, request, ["link_providers"]).providers.count == 20)
        }
    }

    @Test func `A password without an email is of use once there is one`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: "ada", password: Secret("correct horse")))
            #expect(made.user?.providers.isEmpty == true)
            let changed = try Self.update(
                client.client, UsersUpdateRequest(uid: "ada", email: "ada@example.com"), ["email"])
            #expect(changed.providers.map(\.providerID) == ["password"])
            #expect(try client.signIn("ada@example.com", password: "correct horse").user?.uid == "ada")
        }
    }

    // MARK: Deleting many

    private static func delete(_ client: RawClient, _ request: UsersBatchDeleteRequest) throws
        -> UsersBatchDeleteResponse
    {
        try client.call("postern.v1.Users/BatchDelete", request)
    }

    @Test func `Each user of a batch is deleted, or told of with a reason`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for (uid, isDisabled) in [("ann", true), ("bob", false), ("carl", true)] as [(Text, Bool)] {
                let _: UsersCreateResponse = try client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: uid, disabled: isDisabled))
            }
            let request = UsersBatchDeleteRequest(uids: ["ann", "bob", "zoe", "ann", ""])
            let expected: [(Int32, Text)] = [
                (1, "USER_NOT_DISABLED"), (2, "USER_NOT_FOUND"), (3, "NAMED_TWICE"), (4, "USER_NOT_FOUND"),
            ]
            for isTrial in [true, false] {
                var request = request
                request.validateOnly = isTrial
                let answer = try Self.delete(client, request)
                #expect(answer.deletedCount == 1)
                #expect(answer.rejections.map { "\($0.index) \($0.reason)" } == expected.map { "\($0.0) \($0.1)" })
            }
            let forced = try Self.delete(client, UsersBatchDeleteRequest(uids: ["ann", "bob"], force: true))
            #expect(forced.deletedCount == 1 && forced.rejections.map(\.uid) == ["ann"])
            let counted: UsersCountResponse = try client.call("postern.v1.Users/Count", UsersCountRequest())
            #expect(counted.count == 1)
        }
    }

    @Test func `A thousand users go in one call, and one more is refused`() async throws {
        try await withServer { server in
            let client = try server.connect()
            let uids = (0..<1_001).map { Text("u\($0)") }
            for start in [0, 500] {
                let rows = uids[start..<(start + 500)].map { ImportUser(uid: $0) }
                #expect(try ImportTests.importing(client, rows).createdCount == 500)
            }
            expectRefusal("TOO_MANY_ITEMS") {
                _ = try Self.delete(client, UsersBatchDeleteRequest(uids: uids, force: true))
            }
            let answer = try Self.delete(client, UsersBatchDeleteRequest(uids: Array(uids[..<1_000]), force: true))
            #expect(answer.deletedCount == 1_000 && answer.rejections.isEmpty)
            let listed: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest())
            #expect(listed.users.isEmpty)
        }
    }
}
