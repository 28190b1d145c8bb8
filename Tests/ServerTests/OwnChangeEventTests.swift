import Base
import Messages
import TestSupport
import Testing

/// The events of what users change in their own accounts.
@Suite struct OwnChangeEventTests {
    private static func update(_ client: IdentityClient, _ request: AccountsUpdateRequest) throws {
        let _: AccountsUpdateResponse = try client.client.call("postern.v1.Accounts/Update", request)
    }

    @Test func `They name the changed fields, also those that come with a new password`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            let made = try client.signUp("ada@example.com")
            let (uid, idToken) = (try #require(made.user).uid, try #require(made.tokens).idToken)
            try Self.update(
                client,
                AccountsUpdateRequest(
                    idToken: idToken, updateMask: ProtobufFieldMask(paths: ["display_name", "photo_url"]),
                    displayName: "Ada", photoURL: "https://example.com/a.png"))
            try Self.update(
                client,
                AccountsUpdateRequest(
                    idToken: idToken, updateMask: ProtobufFieldMask(paths: ["display_name", "password", "email"]),
                    displayName: "Ada L.", password: Secret("correct horse 2"), email: "ada@other.example"))
            let page: AuditListEventsResponse = try client.client.call(
                "postern.v1.Audit/ListEvents",
                AuditListEventsRequest(
                    pageSize: 1_000, filter: EventFilter(uid: uid, kinds: [.userUpdated, .passwordChanged]),
                    oldestFirst: true))
            #expect(page.events.map(\.kind) == [.userUpdated, .passwordChanged])
            #expect(page.events.map(\.detail) == ["display_name,photo_url", "email,password,display_name"])
        }
    }
}
