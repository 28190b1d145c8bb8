import Base
import Identity
import Messages
import Rules
import TestSupport
import Testing

/// Users.UpdateMany: many users changed by a query.
@Suite struct ManyUsersTests {
    private static func create(_ client: RawClient, _ uids: Range<Int>, claims: String = "") throws {
        for index in uids {
            let _: UsersCreateResponse = try client.call(
                "postern.v1.Users/Create",
                UsersCreateRequest(
                    uid: Text("u\(index)"), email: Text("u\(index)@\(index % 2 == 0 ? "even" : "odd").example")))
            guard !claims.isEmpty else { continue }
            let _: UsersSetCustomClaimsResponse = try client.call(
                "postern.v1.Users/SetCustomClaims",
                UsersSetCustomClaimsRequest(uid: Text("u\(index)"), customClaimsJSON: [UInt8](claims.utf8)))
        }
    }

    private static func get(_ client: RawClient, _ uid: Text) throws -> User {
        let found: UsersGetResponse = try client.call("postern.v1.Users/Get", UsersGetRequest(uid: uid))
        return found.user ?? User()
    }

    private static func update(
        _ client: RawClient, _ query: UsersQueryRequest?, all: Bool = false, size: Int32 = 0, token: Text = .empty,
        disabled: Bool? = nil, claims: String? = nil, revoke: Bool? = nil, validateOnly: Bool = false
    ) throws -> UsersUpdateManyResponse {
        var request = UsersUpdateManyRequest(
            pageSize: size, pageToken: token, query: query, allUsers: all, validateOnly: validateOnly)
        var paths: [Text] = []
        if let disabled { (request.disabled, paths) = (disabled, paths + ["disabled"]) }
        if let claims {
            request.claimsPatchJSON = [UInt8](claims.utf8)
            paths.append("claims_patch_json")
        }
        if let revoke { (request.revokeTokens, paths) = (revoke, paths + ["revoke_tokens"]) }
        request.updateMask = ProtobufFieldMask(paths: paths)
        return try client.call("postern.v1.Users/UpdateMany", request)
    }

    @Test func usersAreChangedInSlicesAndCountedOnce() async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.create(client, 0..<130)
            let query = UsersQueryRequest(emailPart: "@even.example")
            for (validateOnly, expected) in [(true, 65), (false, 65), (false, 0)] {
                var (changed, unchanged, token) = (0, 0, Text.empty)
                repeat {
                    let answer = try Self.update(
                        client, query, size: 30, token: token, disabled: true, validateOnly: validateOnly)
                    #expect(answer.changedCount + answer.unchangedCount <= 30)
                    changed += Int(answer.changedCount)
                    unchanged += Int(answer.unchangedCount)
                    token = answer.nextPageToken
                } while !token.isEmpty
                #expect(changed == expected && changed + unchanged == 65)
                #expect(try Self.get(client, "u2").disabled == !validateOnly)
            }
            #expect(try !Self.get(client, "u1").disabled)
            // As many events as changes.
            let events: AuditListEventsResponse = try client.call(
                "postern.v1.Audit/ListEvents",
                AuditListEventsRequest(pageSize: 1_000, filter: EventFilter(kinds: [.userUpdated])))
            #expect(events.events.count == 65)
        }
    }

    @Test func disablingAndRevokingEndSessions() async throws {
        try await withServer { server in
            let identity = try IdentityClient(server)
            for (email, disabled, revoke) in [("a@x.com", true, nil), ("b@x.com", nil, true)] as [(Text, Bool?, Bool?)]
            {
                let signedUp = try identity.signUp(email)
                server.clock.advance(by: .seconds(1))
                let answer = try Self.update(
                    identity.client, UsersQueryRequest(emailPrefix: email), disabled: disabled, revoke: revoke)
                #expect(answer.changedCount == 1)
                let refused = failure { _ = try identity.refresh(signedUp.tokens?.refreshToken ?? .empty) }
                #expect(["TOKEN_EXPIRED", "USER_DISABLED"].contains(refused.reason), "\(refused)")
            }
        }
    }

    @Test func claimsAreMerged() async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.create(client, 0..<2, claims: #"{"a":{"x":1,"y":2},"b":true}"#)
            try Self.create(client, 2..<3)
            let answer = try Self.update(client, nil, all: true, claims: #"{"a":{"x":null,"z":3},"b":null}"#)
            #expect(answer.changedCount == 3 && answer.unchangedCount == 0)
            #expect(try Self.get(client, "u1").customClaimsJSON == [UInt8](#"{"a":{"y":2,"z":3}}"#.utf8))
            #expect(try Self.get(client, "u2").customClaimsJSON == [UInt8](#"{"a":{"z":3}}"#.utf8))
            #expect(try Self.update(client, nil, all: true, claims: #"{"a":{"z":3}}"#).unchangedCount == 3)
            let removed = try Self.update(client, UsersQueryRequest(claimName: "a"), claims: #"{"a":null}"#)
            #expect(removed.changedCount == 3)
            #expect(try Self.get(client, "u1").customClaimsJSON.isEmpty)
        }
    }

    @Test func aUserThatCannotBeChangedIsToldAndTheOthersAreChanged() async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.create(client, 0..<1, claims: #"{"long":"\#(String(repeating: "x", count: 900))"}"#)
            try Self.create(client, 1..<2)
            let answer = try Self.update(
                client, nil, all: true, claims: #"{"more":"\#(String(repeating: "y", count: 200))"}"#)
            #expect(answer.changedCount == 1)
            #expect(answer.rejections.map(\.uid) == ["u0"] && answer.rejections.map(\.reason) == ["CLAIMS_TOO_LARGE"])
        }
    }

    @Test func whatIsWrongIsRefusedBeforeAnyUserIsRead() async throws {
        try await withServer { server in
            let client = try server.connect()
            expectRefusal("INVALID_QUERY") { _ = try Self.update(client, nil, disabled: true) }
            expectRefusal("INVALID_QUERY") {
                _ = try Self.update(client, UsersQueryRequest(order: .email, descending: true), disabled: true)
            }
            expectRefusal("INVALID_QUERY") {
                _ = try Self.update(client, UsersQueryRequest(emailPrefix: "a"), all: true, disabled: true)
            }
            expectRefusal("INVALID_QUERY") {
                _ = try Self.update(client, UsersQueryRequest(tenantID: "acme", emailPrefix: "a"), disabled: true)
            }
            expectRefusal("INVALID_UPDATE_MASK") { _ = try Self.update(client, nil, all: true) }
            expectRefusal("FORBIDDEN_CLAIM") { _ = try Self.update(client, nil, all: true, claims: #"{"sub":null}"#) }
            expectRefusal("INVALID_CLAIMS") { _ = try Self.update(client, nil, all: true, claims: "") }
            expectRefusal("INVALID_CLAIMS") { _ = try Self.update(client, nil, all: true, claims: "[1]") }
            let most = Int32(server.project.limits.administration.usersUpdatedPerCallMax)
            _ = try Self.update(client, nil, all: true, size: most, disabled: false)
            expectRefusal("INVALID_PAGE_SIZE") {
                _ = try Self.update(client, nil, all: true, size: most + 1, disabled: false)
            }
        }
    }
}
