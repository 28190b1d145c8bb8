import Base
import Messages
import TestSupport
import Testing
import Wire

/// What `validate_only` promises: the request is checked, and nothing is changed.
@Suite(.serialized) struct DryRunTests {
    /// A test over an empty list would run nothing.
    @Test func `Most changes by administrators can be tried`() {
        let changes = PublishedMethod.all.filter { $0.isMutation && $0.role >= Int(Role.tenantAdmin.rawValue) }
        #expect(DryRunScene.methods.count > changes.count / 2 && changes.count > 30)
    }

    @Test(arguments: DryRunScene.methods) func `A dry run leaves the store as it was`(_ method: String) async throws {
        try await withServer { server in
            let scene = try await DryRunScene(server)
            let before = try scene.tables()
            try scene.call(method, validateOnly: true)
            let tried = try scene.tablesChanged(since: before)
            #expect(tried.isEmpty, "\(tried)")
            // The same request changes something: the dry run came as far as the change.
            try scene.call(method, validateOnly: false)
            let done = try scene.tablesChanged(since: before)
            #expect(!done.isEmpty)
        }
    }

    @Test func `A link that is only tried is not made, and the one before it stays good`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            let first = try client.generateVerification(of: "ada@example.com")
            let tried: UsersGenerateOobLinkResponse = try client.client.call(
                "postern.v1.Users/GenerateOobLink",
                UsersGenerateOobLinkRequest(requestType: .verifyEmail, email: "ada@example.com", validateOnly: true))
            #expect(tried.oobCode.isEmpty && tried.oobLink.isEmpty && tried.notMeLink.isEmpty)
            #expect(tried.expiresAtMicros == first.expiresAtMicros)
            _ = try client.applyOob(first.oobCode)
        }
    }

    @Test func `A dry run is refused as the change would be`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.signUp("ada@example.com").user!.uid
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let held = try #require(try client.mails().first).message.messageID
            func refusal(_ method: String, _ request: some Message) -> String {
                failure { let _: AnyMessage = try client.client.call("postern.v1.\(method)", request) }.reason
            }
            let stranger = UsersRevokeSessionRequest(uid: "nobody", sessionID: "00", validateOnly: true)
            #expect(refusal("Users/RevokeSession", stranger) == "USER_NOT_FOUND")
            let session = UsersRevokeSessionRequest(uid: uid, sessionID: "00", validateOnly: true)
            #expect(refusal("Users/RevokeSession", session) == "SESSION_NOT_FOUND")
            let link = UsersGenerateOobLinkRequest(
                requestType: .passwordReset, email: "bob@example.com", validateOnly: true)
            #expect(refusal("Users/GenerateOobLink", link) == "EMAIL_NOT_FOUND")
            let retry = OutboxRetryRequest(messageID: held, validateOnly: true)
            #expect(refusal("Outbox/Retry", retry) == "OUTBOX_MESSAGE_NOT_DELIVERABLE")
            let delete = OutboxDeleteRequest(messageID: "none", validateOnly: true)
            #expect(refusal("Outbox/Delete", delete) == "OUTBOX_MESSAGE_NOT_FOUND")
        }
    }

    @Test func `A dry run uses up no idempotency key`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let id = try #require(try client.mails().first).message.messageID
            let key = [OutgoingMetadata.Entry(key: "idempotency-key", value: "k1")]
            for validateOnly in [true, false] {
                let _: OutboxDeleteResponse = try client.client.call(
                    "postern.v1.Outbox/Delete", OutboxDeleteRequest(messageID: id, validateOnly: validateOnly),
                    metadata: key)
            }
            #expect(try client.mails().isEmpty)
        }
    }
}
