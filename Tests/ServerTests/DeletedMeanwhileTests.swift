import Base
import Messages
import Store
import TestSupport
import Testing

@testable import Identity

/// Calls about a user whose transaction comes right after the user's deletion.
@Suite struct DeletedMeanwhileTests {
    private static let uid: Text = "ada"
    private static let email: Text = "ada@example.com"

    /// Makes a call whose transaction comes right after the user's deletion; returns its failure.
    private static func failureAfterDeletion(
        _ server: TestServer, _ call: @escaping @Sendable (IdentityClient) throws -> Void
    ) async throws -> Failure {
        try await failureOfCall(
            server,
            overtakenByWrite: { transaction in
                server.clock.advance(by: .seconds(1))
                guard let account = try transaction.reading.account(UserKey(.empty, Self.uid)) else { return }
                try transaction.remove(account, origin: .server, now: server.clock.clock.now())
            }
        ) { try call(try IdentityClient(server)) }
    }

    private static func create(_ client: IdentityClient) throws {
        let request = UsersCreateRequest(uid: uid, email: email, emailVerified: true)
        let _: UsersCreateResponse = try client.client.call("postern.v1.Users/Create", request)
    }

    private static func kinds(_ client: IdentityClient) throws -> [EventKind] {
        let filter = EventFilter(uid: uid)
        let page: AuditListEventsResponse = try client.client.call(
            "postern.v1.Audit/ListEvents", AuditListEventsRequest(filter: filter, oldestFirst: true))
        return page.events.map(\.kind)
    }

    /// Verifiers refuse tokens of the uid of a generation before the deletion.
    @Test func `Verifiers accept a user who is created again`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.create(client)
            let refused = try await Self.failureAfterDeletion(server) { try Self.create($0) }
            #expect(refused.reason == "", "\(refused)")
            #expect(try Self.kinds(client) == [.userCreated, .userDeleted, .userCreated])
            let revocations = try server.project.store.read { try $0.revocations(after: 0, limit: 9) }
            let deletion = try #require(revocations.last).revocation
            #expect(deletion.uid == Self.uid)
            #expect(try client.get(Self.uid).tokensValidAfterMicros >= deletion.validAfterMicros)
        }
    }

    /// It would open the account that gets the uid and the email next.
    @Test(arguments: [OobRequestType.passwordReset, .verifyEmail, .verifyAndChangeEmail])
    func `No link is generated for the user`(_ type: OobRequestType) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.create(client)
            let refused = try await Self.failureAfterDeletion(server) { client in
                let request = UsersGenerateOobLinkRequest(
                    requestType: type, email: Self.email,
                    newEmail: type == .verifyAndChangeEmail ? "new@example.com" : .empty)
                let _: UsersGenerateOobLinkResponse = try client.client.call(
                    "postern.v1.Users/GenerateOobLink", request)
            }
            #expect(refused.reason == "EMAIL_NOT_FOUND")
            #expect(try Self.kinds(client) == [.userCreated, .userDeleted])
            #expect(try server.project.store.read { try $0.count(Tables.oobCodes) } == 0)
        }
    }

    /// The answer is that for an unknown address.
    @Test func `No mail with a code is sent to the user`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.create(client)
            let refused = try await Self.failureAfterDeletion(server) { client in
                try client.sendOob(.passwordReset, email: Self.email)
            }
            #expect(refused.reason == "", "\(refused)")
            #expect(try client.mails().isEmpty)
        }
    }
}
