import Base
import Identity
import JSON
import Messages
import Reactor
import Store
import TestSupport
import Testing
import Wire

@testable import Service

/// Work that takes long on an event loop waits for a turn in which nothing else takes as long (decision 0137).
@Suite struct TakenTurnsTests {
    private static func withCarrier(_ body: (TestServer, MemoryCarrier, Text) async throws -> Void) async throws {
        try await withServer { server in
            let carrier = MemoryCarrier(router: server.instance.router, loop: server.instance.loops.loops[0])
            try await body(server, carrier, server.adminKey.bearer)
        }
    }

    private static func append(_ kinds: [EventKind], to tenantID: Text, _ server: TestServer) async throws {
        let now = server.project.clock.now()
        try await server.project.store.write { transaction in
            for kind in kinds { try transaction.appendEvent(kind, tenantID: tenantID, origin: .server, now: now) }
        }
    }

    @Test func `A woken watch of events reads a few, and goes on in turns`() async throws {
        try await Self.withCarrier { server, carrier, authorization in
            try server.makeTenant("acme")
            let request = AuditWatchEventsRequest(
                tenantID: "acme", afterSequence: -1,
                filter: EventFilter(kinds: [.tenantCreated, .userDeleted, .userDeleted]))
            let stream = Task {
                try await carrier.call(
                    "postern.v1.Audit/WatchEvents", [request.encoded()], kind: .remoteClosed,
                    authorization: authorization, answersMax: 2)
            }
            try await until("streams have sent 1") { await carrier.streamedCount >= 1 }
            let others = [EventKind](repeating: .userCreated, count: 3 * StreamCall.wokenRowsMax)
            try await Self.append(others + [.userDeleted], to: "acme", server)
            try await until("streams have sent 2") { await carrier.streamedCount >= 2 }
            // One turn for the first look, and one for what the woken stream did not read.
            #expect(await carrier.workTurnCount == 2)
            // The client goes away at the next look.
            try await Self.append([.userCreated], to: "acme", server)
            let kinds = try await stream.value.messages.map { try AuditWatchEventsResponse(decoding: $0).event?.kind }
            #expect(kinds == [.tenantCreated, .userDeleted])
        }
    }

    @Test func `A woken watch of revocations reads a few, and goes on in turns`() async throws {
        try await Self.withCarrier { server, carrier, authorization in
            let stream = Task {
                try await carrier.call(
                    "postern.v1.Tokens/WatchRevocations", [TokensWatchRevocationsRequest().encoded()],
                    kind: .remoteClosed, authorization: authorization, answersMax: 5)
            }
            // A snapshot, and a first message that says how far it is.
            try await until("streams have sent 2") { await carrier.streamedCount >= 2 }
            try await RevocationTests.fillLog(of: server)
            let answers = try await stream.value.messages.map { try TokensWatchRevocationsResponse(decoding: $0) }
            #expect(answers.map(\.revocations.count) == [0, 0, StreamCall.wokenRowsMax, 500, 500])
            #expect(answers.map(\.continues) == [false, false, true, true, true])
            #expect(await carrier.workTurnCount == 4)
        }
    }

    @Test func `Checking all methods and previewing a mail take the turn of a page`() async throws {
        try await Self.withCarrier { _, carrier, authorization in
            let tested = try await carrier.call(
                "postern.v1.Project/TestPermissions", [ProjectTestPermissionsRequest().encoded()],
                authorization: authorization)
            #expect(try tested.message(ProjectTestPermissionsResponse.self).permissions.count > 100)
            #expect(await carrier.pageTurnCount == 1)
            let request = EmailConfigsPreviewTemplateRequest(requestType: .passwordReset)
            let preview = try await carrier.call(
                "postern.v1.EmailConfigs/PreviewTemplate", [request.encoded()], authorization: authorization)
            #expect(try !preview.message(EmailConfigsPreviewTemplateResponse.self).text.isEmpty)
            #expect(await carrier.pageTurnCount == 2)
        }
    }

    @Test func `Users by many names and mail settings with their templates take the turn of a page`() async throws {
        try await Self.withCarrier { _, carrier, authorization in
            let users = try await carrier.call(
                "postern.v1.Users/BatchGet", [UsersBatchGetRequest(uids: ["zoe"]).encoded()],
                authorization: authorization)
            #expect(try users.message(UsersBatchGetResponse.self).notFound.count == 1)
            #expect(await carrier.pageTurnCount == 1)
            let config = try await carrier.call(
                "postern.v1.EmailConfigs/Get", [EmailConfigsGetRequest().encoded()], authorization: authorization)
            #expect(config.failure == nil)
            #expect(await carrier.pageTurnCount == 2)
        }
    }

    @Test func `A change of many tenants takes a turn`() async throws {
        try await Self.withCarrier { _, carrier, authorization in
            let request = TenantsUpdateManyRequest(
                pageSize: 200, filter: TenantFilter(tenantIDPrefix: "tenant-"),
                tenant: Messages.Tenant(enableAnonymousUser: true),
                updateMask: ProtobufFieldMask(paths: ["enable_anonymous_user"]))
            let changed = try await carrier.call(
                "postern.v1.Tenants/UpdateMany", [request.encoded()], authorization: authorization)
            #expect(changed.failure == nil)
            #expect(await carrier.workTurnCount == 1)
        }
    }

    /// A forged token without a `kid` is tried with all keys of the account that it names.
    @Test func `A custom token that names no key takes a turn, and one that names a key takes none`() async throws {
        try await Self.withCarrier { server, carrier, authorization in
            let backEnd = try BackEnd(server)
            let unnamed = backEnd.token(header: backEnd.header.with("kid", nil))
            func signIn(_ token: Text) async throws -> Failure? {
                let request = AccountsSignInWithCustomTokenRequest(token: Secret(token.bytes))
                return try await carrier.call(
                    "postern.v1.Accounts/SignInWithCustomToken", [request.encoded()], authorization: authorization
                ).failure
            }
            #expect(try await signIn(backEnd.token()) == nil)
            #expect(await carrier.workTurnCount == 0)
            #expect(try await signIn(unnamed) == nil)
            #expect(await carrier.workTurnCount == 1)
            let forged = Text(unchecked: unnamed.bytes.dropLast(8) + [UInt8](repeating: UInt8(ascii: "A"), count: 8))
            #expect(try await signIn(forged)?.reason == "INVALID_CUSTOM_TOKEN")
            #expect(await carrier.workTurnCount == 2)
            let request = AccountsReauthenticateRequest(credential: .customToken(Secret(forged.bytes)))
            let refused = try await carrier.call(
                "postern.v1.Accounts/Reauthenticate", [request.encoded()], authorization: authorization)
            #expect(refused.failure != nil)
            #expect(await carrier.workTurnCount == 3)
        }
    }
}
