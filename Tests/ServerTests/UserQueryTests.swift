import Base
import Messages
import Service
import TestSupport
import Testing

/// Users among many: counted, found by what is known of them, read together.
@Suite struct UserQueryTests {
    /// A user whom the queries below look for.
    private struct Person {
        let uid: Text
        var email: Text = .empty
        var name: Text = .empty
        var phone: Text = .empty
        var isDisabled = false
        var isVerified = false
        var claims: Text = .empty
        var provider: ProviderInfo?
        /// In seconds since 1970.
        var created: Int64
        var lastSignIn: Int64 = 0
    }

    private static let people = [
        Person(uid: "ann", email: "Ann@Example.com", name: "Ann Smith", phone: "+14155550101", created: 100),
        Person(uid: "bob", email: "bob@example.com", name: "bob", isVerified: true, created: 300, lastSignIn: 900),
        Person(
            uid: "carl", email: "carl@shop.example", name: "\u{C4}nn", phone: "+4930123456", isDisabled: true,
            claims: #"{"role":"editor","teams":["red","blue"],"level":3}"#, created: 200),
        Person(
            uid: "dora", name: "ANNA", claims: #"{"role":"admin"}"#,
            provider: ProviderInfo(providerID: "google.com", rawID: "g-1"), created: 300, lastSignIn: 400),
        Person(uid: "eve", phone: "+14155550199", created: 400),
    ]

    static func fill(_ client: RawClient, tenantID: Text = .empty) throws {
        for person in people {
            var row = ImportUser(uid: person.uid, email: person.email, emailVerified: person.isVerified)
            row.displayName = person.name
            row.phoneNumber = person.phone
            row.disabled = person.isDisabled
            row.customClaimsJSON = person.claims.bytes
            row.createdAtMicros = person.created * 1_000_000
            row.lastSignInAtMicros = person.lastSignIn * 1_000_000
            row.providers = person.provider.map { [$0] } ?? []
            try importRows([row], client, tenantID: tenantID)
        }
    }

    private static func importRows(_ rows: [ImportUser], _ client: RawClient, tenantID: Text = .empty) throws {
        let answer = try ImportTests.importing(client, rows, onConflict: .replace, tenantID: tenantID)
        try #require(answer.rejections.isEmpty, "\(answer.rejections)")
    }

    private static func uids(_ client: RawClient, _ request: UsersQueryRequest) throws -> [Text] {
        let page: UsersQueryResponse = try client.call("postern.v1.Users/Query", request)
        #expect(page.isComplete == page.nextPageToken.isEmpty)
        return page.users.map(\.uid)
    }

    private static let queries: [(UsersQueryRequest, [Text])] = [
        (UsersQueryRequest(), ["ann", "bob", "carl", "dora", "eve"]),
        (UsersQueryRequest(descending: true), ["eve", "dora", "carl", "bob", "ann"]),
        (UsersQueryRequest(emailPrefix: "ANN@"), ["ann"]),
        (UsersQueryRequest(emailPart: "@EXAMPLE."), ["ann", "bob"]),
        (UsersQueryRequest(order: .uid, emailPart: "example"), ["ann", "bob", "carl"]),
        (UsersQueryRequest(order: .email), ["ann", "bob", "carl"]),
        (UsersQueryRequest(order: .email, descending: true), ["carl", "bob", "ann"]),
        (UsersQueryRequest(displayNamePrefix: "ann"), ["ann", "dora"]),
        (UsersQueryRequest(displayNamePrefix: "\u{C4}"), ["carl"]),
        (UsersQueryRequest(phoneNumberPrefix: "+1415555"), ["ann", "eve"]),
        (UsersQueryRequest(order: .phoneNumber, descending: true), ["carl", "eve", "ann"]),
        (UsersQueryRequest(providerID: "google.com"), ["dora"]),
        (UsersQueryRequest(providerID: "google.com", rawID: "g-1"), ["dora"]),
        (UsersQueryRequest(providerID: "google.com", rawID: "g-2"), []),
        (UsersQueryRequest(providerID: "phone", rawID: "+14155550199"), ["eve"]),
        (UsersQueryRequest(providerID: "phone"), ["ann", "carl", "eve"]),
        (UsersQueryRequest(disabledCondition: .disabled(true)), ["carl"]),
        (UsersQueryRequest(disabledCondition: .disabled(false)), ["ann", "bob", "dora", "eve"]),
        (UsersQueryRequest(emailVerifiedCondition: .emailVerified(true)), ["bob"]),
        (UsersQueryRequest(order: .created), ["ann", "carl", "bob", "dora", "eve"]),
        (UsersQueryRequest(order: .created, descending: true), ["eve", "dora", "bob", "carl", "ann"]),
        (UsersQueryRequest(createdFromMicros: 200_000_000, createdBeforeMicros: 400_000_000), ["carl", "bob", "dora"]),
        (
            UsersQueryRequest(descending: true, createdFromMicros: 200_000_000, createdBeforeMicros: 400_000_000),
            ["dora", "bob", "carl"]
        ),
        (UsersQueryRequest(order: .uid, createdFromMicros: 300_000_001), ["eve"]),
        (UsersQueryRequest(createdFromMicros: 500_000_000), []),
        (UsersQueryRequest(lastSignInFromMicros: 400_000_000), ["bob", "dora"]),
        (UsersQueryRequest(lastSignInBeforeMicros: 900_000_000), ["ann", "carl", "dora", "eve"]),
        (UsersQueryRequest(claimName: "role"), ["carl", "dora"]),
        (UsersQueryRequest(claimName: "role", claimValueJSON: #""admin""#), ["dora"]),
        (UsersQueryRequest(claimName: "teams", claimValueJSON: #""blue""#), ["carl"]),
        (UsersQueryRequest(claimName: "level", claimValueJSON: "3"), ["carl"]),
        (UsersQueryRequest(claimName: "level", claimValueJSON: #""3""#), []),
        (UsersQueryRequest(emailPart: "example", disabledCondition: .disabled(false), claimName: "role"), []),
    ]

    @Test func `Each condition finds its users and no others, in the order that was asked for`() async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.fill(client)
            for (query, expected) in Self.queries {
                #expect(try Self.uids(client, query) == expected, "\(query)")
            }
        }
    }

    @Test(arguments: [1, 2, 3]) func `Pages of any size hold what one page holds`(_ size: Int32) async throws {
        try await withServer(configure: { $0.limits.pageRowsReadMax = Int(size) + 1 }) { server in
            let client = try server.connect()
            try Self.fill(client)
            for (query, expected) in Self.queries {
                var request = query
                request.pageSize = size
                var (found, scanned): ([Text], Int) = ([], 0)
                repeat {
                    let page: UsersQueryResponse = try client.call("postern.v1.Users/Query", request)
                    #expect(page.users.count <= Int(size) && page.scanned <= size + 1)
                    found += page.users.map(\.uid)
                    scanned += Int(page.scanned)
                    request.pageToken = page.nextPageToken
                } while !request.pageToken.isEmpty
                #expect(found == expected, "\(query)")
                #expect(scanned <= 6 && (scanned >= found.count), "\(query)")
            }
        }
    }

    @Test func `A condition that cannot be is refused, and one past each limit`() async throws {
        try await withServer { server in
            let client = try server.connect()
            let long = { (count: Int) in Text(String(repeating: "x", count: count)) }
            let wrong = [
                UsersQueryRequest(emailPrefix: long(255)), UsersQueryRequest(emailPart: long(255)),
                UsersQueryRequest(displayNamePrefix: long(257)), UsersQueryRequest(phoneNumberPrefix: "4930"),
                UsersQueryRequest(phoneNumberPrefix: "+1234567890123456"), UsersQueryRequest(phoneNumberPrefix: "+1x"),
                UsersQueryRequest(rawID: "g-1"), UsersQueryRequest(providerID: long(129)),
                UsersQueryRequest(providerID: "google.com", rawID: long(257)),
                UsersQueryRequest(createdFromMicros: -1),
                UsersQueryRequest(createdFromMicros: 2, createdBeforeMicros: 1),
                UsersQueryRequest(lastSignInFromMicros: .min), UsersQueryRequest(lastSignInBeforeMicros: .min),
                UsersQueryRequest(claimName: long(1_001)), UsersQueryRequest(claimValueJSON: "1"),
                UsersQueryRequest(claimName: "role", claimValueJSON: "admin"),
                UsersQueryRequest(claimName: "role", claimValueJSON: "[[[[[[1]]]]]]"),
            ]
            for query in wrong {
                expectRefusal("INVALID_QUERY") { _ = try Self.uids(client, query) }
            }
            let longest = [
                UsersQueryRequest(emailPrefix: long(254)), UsersQueryRequest(emailPart: long(254)),
                UsersQueryRequest(displayNamePrefix: long(256)),
                UsersQueryRequest(phoneNumberPrefix: "+123456789012345"),
                UsersQueryRequest(providerID: long(128), rawID: long(256)),
                UsersQueryRequest(claimName: long(1_000)), UsersQueryRequest(createdFromMicros: .max),
            ]
            for query in longest { #expect(try Self.uids(client, query) == []) }
        }
    }

    @Test func `Users of other tenants are neither found nor counted`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for tenantID in ["acme", "acme-2"] as [Text] {
                let _: TenantsCreateResponse = try client.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
            }
            try Self.fill(client, tenantID: "acme")
            for (query, expected) in Self.queries {
                for tenantID in ["", "acme", "acme-2"] as [Text] {
                    var request = query
                    request.tenantID = tenantID
                    #expect(try Self.uids(client, request) == (tenantID == "acme" ? expected : []), "\(request)")
                }
            }
            for (tenantID, expected) in [("", 0), ("acme", 5), ("acme-2", 0)] as [(Text, Int64)] {
                #expect(try Self.count(client, tenantID) == expected)
            }
        }
    }

    /// Parsing a megabyte of claims would keep a loop from its other connections.
    @Test func `A page that looks into claims ends after fewer bytes, and the next one goes on`() async throws {
        let byteCountMax = 40_000
        let claims = Text(#"{"mark":""# + String(repeating: "x", count: 900) + #""}"#)
        try await withServer(configure: { $0.limits.administration.claimBytesReadMax = byteCountMax }) { server in
            let client = try server.connect()
            for batch in 0..<3 {
                let rows = (0..<40).map { ImportUser(uid: Text("u\(batch)-\($0)"), customClaimsJSON: claims.bytes) }
                try Self.importRows(rows, client)
            }
            let other: UsersQueryResponse = try client.call(
                "postern.v1.Users/Query", UsersQueryRequest(displayNamePrefix: "none"))
            #expect(other.scanned == 120 && other.isComplete)
            for (claimName, expected) in [("none", 0), ("mark", 120)] as [(Text, Int)] {
                for order in [UserOrder.uid, .created] {
                    var request = UsersQueryRequest(pageSize: 1_000, order: order, claimName: claimName)
                    var (scanned, found) = (0, 0)
                    repeat {
                        let page: UsersQueryResponse = try client.call("postern.v1.Users/Query", request)
                        // The row with which the bytes are reached is read to its end.
                        #expect((Int(page.scanned) - 1) * claims.byteCount < byteCountMax)
                        (scanned, found) = (scanned + Int(page.scanned), found + page.users.count)
                        request.pageToken = page.nextPageToken
                    } while !request.pageToken.isEmpty
                    #expect(scanned == 120 && found == expected, "\(claimName) by \(order)")
                }
            }
            var change = UsersUpdateManyRequest(pageSize: 500, query: UsersQueryRequest(claimName: "none"))
            (change.disabled, change.updateMask) = (true, ProtobufFieldMask(paths: ["disabled"]))
            let changed: UsersUpdateManyResponse = try client.call("postern.v1.Users/UpdateMany", change)
            #expect((Int(changed.scanned) - 1) * claims.byteCount < byteCountMax && !changed.nextPageToken.isEmpty)
        }
    }

    // MARK: Counting

    private static func count(_ client: RawClient, _ tenantID: Text = .empty) throws -> Int64 {
        let counted: UsersCountResponse = try client.call(
            "postern.v1.Users/Count", UsersCountRequest(tenantID: tenantID))
        return counted.count
    }

    @Test func `The count follows every change, and so does the order of creation`() async throws {
        try await withServer { server in
            let client = try server.connect()
            for index in 1...4 {
                let _: UsersCreateResponse = try client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: Text("u\(index)")))
                #expect(try Self.count(client) == Int64(index))
            }
            let _: UsersUpdateResponse = try client.call(
                "postern.v1.Users/Update",
                UsersUpdateRequest(
                    uid: "u1", updateMask: ProtobufFieldMask(paths: ["display_name"]), displayName: "One"))
            expectRefusal("DUPLICATE_LOCAL_ID") {
                let _: UsersCreateResponse = try client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: "u1"))
            }
            #expect(try Self.count(client) == 4)
            // An import replaces the user, with the time of creation that it brings.
            try Self.importRows([ImportUser(uid: "u3", createdAtMicros: 1)], client)
            #expect(try Self.count(client) == 4)
            #expect(try Self.uids(client, UsersQueryRequest(order: .created)).first == "u3")
            let _: UsersDeleteResponse = try client.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: "u3"))
            #expect(try Self.count(client) == 3)
            #expect(try Set(Self.uids(client, UsersQueryRequest(order: .created))) == ["u1", "u2", "u4"])
        }
    }

    @Test func `A user deleted between two pages is missing, and the others come`() async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.fill(client)
            for order in [UserOrder.uid, .created] {
                var request = UsersQueryRequest(pageSize: 2, order: order)
                let first: UsersQueryResponse = try client.call("postern.v1.Users/Query", request)
                // The last user of the page: the next page begins at its place.
                let gone = try #require(first.users.last).uid
                let _: UsersDeleteResponse = try client.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: gone))
                request.pageToken = first.nextPageToken
                request.pageSize = 100
                #expect(try Self.uids(client, request).count == (order == .uid ? 3 : 2))
            }
        }
    }
}
