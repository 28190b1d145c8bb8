import Base
import Messages
import Service
import TestSupport
import Testing

/// What admins do with users.
@Suite struct UsersTests {
    private static func create(_ client: RawClient, _ request: UsersCreateRequest) throws -> User {
        let made: UsersCreateResponse = try client.call("postern.v1.Users/Create", request)
        return made.user ?? User()
    }

    private static let password = Secret([UInt8]("correct horse".utf8))

    // MARK: Creating

    @Test func everyWrongFieldIsRefusedAndNothingIsMade() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try Self.create(
                client, UsersCreateRequest(uid: "taken", email: "Taken@example.com", phoneNumber: "+14155550100"))
            let long = { (count: Int) in Text(String(repeating: "x", count: count)) }
            let cases: [(UsersCreateRequest, String)] = [
                (UsersCreateRequest(uid: long(129)), "INVALID_UID"),
                (UsersCreateRequest(uid: "new", displayName: long(257)), "INVALID_DISPLAY_NAME"),
                (UsersCreateRequest(uid: "new", displayName: "a\u{202E}b"), "INVALID_DISPLAY_NAME"),
                (UsersCreateRequest(uid: "new", photoURL: "javascript:1"), "INVALID_PHOTO_URL"),
                (UsersCreateRequest(uid: "new", photoURL: Text("https://\(long(2_048))")), "INVALID_PHOTO_URL"),
                (UsersCreateRequest(uid: "new", phoneNumber: "0041791234567"), "INVALID_PHONE_NUMBER"),
                (UsersCreateRequest(uid: "new", email: "no address"), "INVALID_EMAIL"),
                (UsersCreateRequest(uid: "new", email: "K\u{212A}@example.com"), "INVALID_EMAIL"),
                (
                    UsersCreateRequest(uid: "new", email: "a@example.com", password: Secret([UInt8]("12345".utf8))),
                    "WEAK_PASSWORD"
                ),
                (UsersCreateRequest(uid: "taken"), "DUPLICATE_LOCAL_ID"),
                (UsersCreateRequest(uid: "new", email: "tAKEN@EXAMPLE.com"), "EMAIL_EXISTS"),
                (UsersCreateRequest(uid: "new", phoneNumber: "+14155550100"), "PHONE_NUMBER_EXISTS"),
            ]
            for (request, reason) in cases {
                expectRefusal(reason) { _ = try Self.create(client, request) }
            }
            let listed: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest())
            #expect(listed.users.map(\.uid) == ["taken"])
        }
    }

    @Test func validatingOnlyChangesNothing() async throws {
        try await withServer { server in
            let client = try server.connect()
            let wanted = UsersCreateRequest(uid: "u", email: "ada@example.com", password: Self.password)
            var trial = wanted
            trial.validateOnly = true
            #expect(try Self.create(client, trial).uid == "u")
            #expect(try Self.create(client, wanted).uid == "u")
            expectRefusal("DUPLICATE_LOCAL_ID") { _ = try Self.create(client, trial) }
            let update = UsersUpdateRequest(
                uid: "u", updateMask: ProtobufFieldMask(paths: ["email"]), email: "new@example.com",
                validateOnly: true)
            let tried: UsersUpdateResponse = try client.call("postern.v1.Users/Update", update)
            #expect(tried.user?.email == "new@example.com")
            let _: UsersDeleteResponse = try client.call(
                "postern.v1.Users/Delete", UsersDeleteRequest(uid: "u", validateOnly: true))
            let read: UsersGetByEmailResponse = try client.call(
                "postern.v1.Users/GetByEmail", UsersGetByEmailRequest(email: "ADA@example.com"))
            #expect(read.user?.uid == "u")
        }
    }

    // MARK: Listing

    @Test(arguments: [1, 7, 100]) func pagesHoldEveryUserOnceInOrder(_ pageSize: Int32) async throws {
        try await withServer { server in
            let client = try server.connect()
            for index in 0..<53 { _ = try Self.create(client, UsersCreateRequest(uid: Text("u\(index + 100)"))) }
            var uids: [Text] = []
            var token = Text.empty
            repeat {
                let page: UsersListResponse = try client.call(
                    "postern.v1.Users/List", UsersListRequest(pageSize: pageSize, pageToken: token))
                #expect(page.users.count <= Int(pageSize) && !page.users.isEmpty)
                uids += page.users.map(\.uid)
                token = page.nextPageToken
                // A user who is deleted behind the page, or made before it, does not disturb the rest.
                let _: UsersDeleteResponse = try client.call(
                    "postern.v1.Users/Delete", UsersDeleteRequest(uid: page.users[0].uid))
                _ = try Self.create(client, UsersCreateRequest(uid: Text("a\(uids.count)")))
            } while !token.isEmpty
            #expect(uids == (0..<53).map { Text("u\($0 + 100)") })
        }
    }

    @Test func aPageEndsAtItsByteLimitToo() async throws {
        try await withServer(configure: { $0.limits.pageBytesMax = 5_000 }) { server in
            let client = try server.connect()
            let photo = Text("https://x/" + String(repeating: "x", count: 1_900))
            for index in 0..<5 {
                _ = try Self.create(client, UsersCreateRequest(uid: Text("u\(index)"), photoURL: photo))
            }
            let page: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest(pageSize: 100))
            #expect(page.users.count == 3 && !page.nextPageToken.isEmpty)
        }
    }

    @Test(
        arguments: [
            (-1, "", "INVALID_PAGE_SIZE"), (1_001, "", "INVALID_PAGE_SIZE"), (0, "!!", "INVALID_PAGE_TOKEN"),
            (0, "_____w", "INVALID_PAGE_TOKEN"), (0, "AA==", "INVALID_PAGE_TOKEN"),
        ] as [(Int32, Text, String)])
    func aWrongPageIsRefused(_ size: Int32, _ token: Text, _ reason: String) async throws {
        try await withServer { server in
            let client = try server.connect()
            let refused = failure {
                let _: UsersListResponse = try client.call(
                    "postern.v1.Users/List", UsersListRequest(pageSize: size, pageToken: token))
            }
            #expect(refused.reason == reason)
        }
    }

    // MARK: Changing

    @Test func eachMaskedFieldIsSetAndRemoved() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try Self.create(
                client.client, UsersCreateRequest(email: "ada@example.com", emailVerified: true)
            ).uid
            let rows: [(Text, (inout UsersUpdateRequest) -> Void, (User) -> Bool)] = [
                ("display_name", { $0.displayName = "Ada" }, { $0.displayName == "Ada" }),
                ("display_name", { _ in }, { $0.displayName.isEmpty }),
                ("photo_url", { $0.photoURL = "https://x.example/a" }, { $0.photoURL == "https://x.example/a" }),
                ("photo_url", { _ in }, { $0.photoURL.isEmpty }),
                ("phone_number", { $0.phoneNumber = "+14155550100" }, { $0.providers.map(\.providerID) == ["phone"] }),
                ("phone_number", { _ in }, { $0.providers.isEmpty }),
                ("email_verified", { $0.emailVerified = false }, { !$0.emailVerified }),
                ("email_verified", { $0.emailVerified = true }, { $0.emailVerified }),
                ("password", { $0.password = Self.password }, { $0.providers.map(\.providerID) == ["password"] }),
                ("password", { _ in }, { $0.providers.isEmpty }),
                ("email", { $0.email = "ADA@example.com" }, { $0.email == "ADA@example.com" && $0.emailVerified }),
                ("email", { $0.email = "new@example.com" }, { $0.email == "new@example.com" && !$0.emailVerified }),
                ("email", { _ in }, { $0.email.isEmpty }),
                ("disabled", { $0.disabled = true }, { $0.disabled }), ("disabled", { _ in }, { !$0.disabled }),
            ]
            for (path, change, holds) in rows {
                try client.update(uid, [path], change)
                #expect(holds(try client.get(uid)), "\(path)")
            }
            for (paths, reason) in [
                (["uid"], "INVALID_UPDATE_MASK"), ([], "INVALID_UPDATE_MASK"),
                (["email", "email"], "INVALID_UPDATE_MASK"),
            ] as [([Text], String)] {
                expectRefusal(reason) { try client.update(uid, paths) { _ in } }
            }
            expectRefusal("USER_NOT_FOUND") { try client.update("nobody", ["disabled"]) { _ in } }
        }
    }

    @Test(
        arguments: [
            ("email", "ADMIN"), ("password", "PASSWORD_CHANGED"), ("disabled", ""), ("display_name", ""),
        ] as [(Text, String)])
    func whatEndsSessionsEndsThem(_ path: Text, _ cause: String) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            try client.update(made.user!.uid, [path]) {
                $0.email = "new@example.com"
                $0.password = Self.password
                $0.disabled = true
                $0.displayName = "Ada"
            }
            if path == "disabled" { try client.update(made.user!.uid, [path]) { $0.disabled = false } }
            let refused = failure { _ = try client.refresh(made.tokens!.refreshToken) }
            // Enabling again does not revive the sessions that disabling ended.
            let expected = path == "disabled" ? "ADMIN" : cause
            #expect(refused.metadata("cause") ?? "" == expected)
        }
    }

    @Test func customClaimsAreInTheNextToken() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            func set(_ json: String) -> String {
                failure {
                    let _: UsersSetCustomClaimsResponse = try client.client.call(
                        "postern.v1.Users/SetCustomClaims",
                        UsersSetCustomClaimsRequest(uid: made.user!.uid, customClaimsJSON: Array(json.utf8)))
                }.reason
            }
            #expect(set(#"{"staff":true,"level":3}"#) == "")
            let tokens = try client.refresh(made.tokens!.refreshToken).tokens!
            let verified: TokensVerifyIdTokenResponse = try client.client.call(
                "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: tokens.idToken))
            let claims = String(decoding: verified.claimsJSON, as: UTF8.self)
            #expect(claims.contains(#""staff":true"#) && claims.contains(#""level":3"#))
            #expect(set("[]") == "INVALID_CLAIMS")
            #expect(set(#"{"a":1,"a":2}"#) == "INVALID_CLAIMS")
            #expect(set(#"{"sub":"eve"}"#) == "FORBIDDEN_CLAIM")
            #expect(set(#"{"firebase":{}}"#) == "FORBIDDEN_CLAIM")
            #expect(set(#"{"a":""# + String(repeating: "x", count: 1_000) + #""}"#) == "CLAIMS_TOO_LARGE")
            #expect(set("") == "")
        }
    }
}
