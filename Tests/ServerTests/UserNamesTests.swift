import Base
import Messages
import Service
import TestSupport
import Testing

/// Users are found by properties that only one of them has, one or many at once.
@Suite struct UserNamesTests {
    @Test func `A user is found by phone number and by identity`() async throws {
        try await withServer { server in
            let client = try server.connect()
            try UserQueryTests.fill(client)
            func uid(_ identity: ProviderIdentity?) throws -> Text? {
                let found: UsersGetByProviderResponse = try client.call(
                    "postern.v1.Users/GetByProvider", UsersGetByProviderRequest(identity: identity))
                return found.user?.uid
            }
            let found: UsersGetByPhoneResponse = try client.call(
                "postern.v1.Users/GetByPhone", UsersGetByPhoneRequest(phoneNumber: "+4930123456"))
            #expect(found.user?.uid == "carl")
            for (number, reason) in [("", "INVALID_PHONE_NUMBER"), ("4930", "INVALID_PHONE_NUMBER")] as [(Text, String)]
            {
                expectRefusal(reason) {
                    let _: UsersGetByPhoneResponse = try client.call(
                        "postern.v1.Users/GetByPhone", UsersGetByPhoneRequest(phoneNumber: number))
                }
            }
            expectRefusal("USER_NOT_FOUND") {
                let _: UsersGetByPhoneResponse = try client.call(
                    "postern.v1.Users/GetByPhone", UsersGetByPhoneRequest(phoneNumber: "+14155550000"))
            }
            #expect(try uid(ProviderIdentity(providerID: "google.com", rawID: "g-1")) == "dora")
            #expect(try uid(ProviderIdentity(providerID: "phone", rawID: "+14155550101")) == "ann")
            let _: UsersUpdateResponse = try client.call(
                "postern.v1.Users/Update",
                UsersUpdateRequest(
                    uid: "bob", updateMask: ProtobufFieldMask(paths: ["password"]), password: Secret("correct horse")))
            #expect(try uid(ProviderIdentity(providerID: "password", rawID: "BOB@example.com")) == "bob")
            let refused: [(ProviderIdentity?, String)] = [
                (nil, "INVALID_PROVIDER"), (ProviderIdentity(providerID: "google.com"), "INVALID_PROVIDER"),
                (ProviderIdentity(providerID: "google.com", rawID: "g-1", issuer: "not one"), "INVALID_ISSUER"),
                (ProviderIdentity(providerID: "google.com", rawID: "g-2"), "USER_NOT_FOUND"),
                (ProviderIdentity(providerID: "password", rawID: "ann@example.com"), "USER_NOT_FOUND"),
                (ProviderIdentity(providerID: "password", rawID: "no address"), "INVALID_EMAIL"),
                (ProviderIdentity(providerID: "phone", rawID: "1"), "INVALID_PHONE_NUMBER"),
            ]
            for (identity, reason) in refused { expectRefusal(reason) { _ = try uid(identity) } }
        }
    }

    @Test func `Many users are read at once, each once, and what is absent is told`() async throws {
        try await withServer { server in
            let client = try server.connect()
            try UserQueryTests.fill(client)
            func get(_ request: UsersBatchGetRequest) throws -> UsersBatchGetResponse {
                try client.call("postern.v1.Users/BatchGet", request)
            }
            let google = ProviderIdentity(providerID: "google.com", rawID: "g-1")
            let answer = try get(
                UsersBatchGetRequest(
                    uids: ["bob", "zoe", "bob"], emails: ["ANN@example.com", "nobody@example.com"],
                    phoneNumbers: ["+14155550101", "+14155550199"],
                    identities: [google, ProviderIdentity(providerID: "google.com", rawID: "g-9")]))
            #expect(answer.users.map(\.uid) == ["bob", "ann", "eve", "dora"])
            #expect(
                answer.notFound == [
                    UserName(name: .uid("zoe")), UserName(name: .email("nobody@example.com")),
                    UserName(name: .identity(ProviderIdentity(providerID: "google.com", rawID: "g-9"))),
                ])
            #expect(answer.notRead.isEmpty)
            let hundred = (0..<100).map { Text("u\($0)") }
            #expect(try get(UsersBatchGetRequest(uids: hundred)).notFound.count == 100)
            expectRefusal("TOO_MANY_ITEMS") { _ = try get(UsersBatchGetRequest(uids: hundred + ["u100"])) }
            let emails = hundred.map { Text("\($0)@example.com") }
            let numbers = (0..<100).map { Text("+1415555\(1_000 + $0)") }
            let identities = hundred.map { ProviderIdentity(providerID: "google.com", rawID: $0) }
            let all = UsersBatchGetRequest(uids: hundred, emails: emails, phoneNumbers: numbers, identities: identities)
            #expect(try get(all).notFound.count == 400)
            for (name, reason) in [("", "INVALID_UID"), ("x", "INVALID_EMAIL")] as [(Text, String)] {
                let request = UsersBatchGetRequest(
                    uids: reason == "INVALID_UID" ? [name] : [], emails: name.isEmpty ? [] : [name])
                expectRefusal(reason) { _ = try get(request) }
            }
        }
    }

    @Test func `A full answer says which names it did not read`() async throws {
        try await withServer(configure: { $0.limits.pageBytesMax = 1 }) { server in
            let client = try server.connect()
            try UserQueryTests.fill(client)
            let answer: UsersBatchGetResponse = try client.call(
                "postern.v1.Users/BatchGet", UsersBatchGetRequest(uids: ["zoe", "ann", "bob", "yan"]))
            #expect(answer.users.map(\.uid) == ["ann"] && answer.notFound == [UserName(name: .uid("zoe"))])
            #expect(answer.notRead == [UserName(name: .uid("bob")), UserName(name: .uid("yan"))])
        }
    }
}
