import Base
import Identity
import Messages
import Reactor
import TestSupport
import Testing
import Wire

@testable import Service

/// The router needs no connection: whatever carries a call, the call goes the same way.
@Suite struct MemoryCarrierTests {
    private static func withCarrier(_ body: (TestServer, MemoryCarrier, Text) async throws -> Void) async throws {
        try await withServer { server in
            let carrier = MemoryCarrier(router: server.instance.router, loop: server.instance.loops.loops[0])
            let authorization = server.adminKey.bearer
            try await body(server, carrier, authorization)
        }
    }

    private static func count(_ server: TestServer, _ fullName: String, _ code: StatusCode) -> UInt64? {
        server.instance.router.registry.all.first { $0.descriptor.fullName == fullName }?.metrics.count(code)
    }

    @Test func aChangeALookupAndAPageAreAnswered() async throws {
        try await Self.withCarrier { server, carrier, authorization in
            let create = UsersCreateRequest(uid: "ada", displayName: "Ada")
            for _ in 0..<2 {
                // The second call is the same change, by its key.
                let made = try await carrier.call(
                    "postern.v1.Users/Create", [create.encoded()], authorization: authorization,
                    idempotencyKey: "one")
                #expect(try made.message(UsersCreateResponse.self).user?.uid == "ada")
            }
            let get = UsersGetRequest(uid: "ada")
            let found = try await carrier.call(
                "postern.v1.Users/Get", [get.encoded()], authorization: authorization)
            #expect(try found.message(UsersGetResponse.self).user?.displayName == "Ada")
            let list = try await carrier.call(
                "postern.v1.Users/List", [UsersListRequest().encoded()], authorization: authorization)
            #expect(try list.message(UsersListResponse.self).users.map(\.uid) == ["ada"])
            #expect(await carrier.isAuthenticated)
            #expect(Self.count(server, "postern.v1.Users/Get", .ok) == 1)
            #expect(Self.count(server, "postern.v1.Users/Create", .ok) == 2)
            #expect(Self.count(server, "postern.v1.Users/List", .ok) == 1)
        }
    }

    @Test(arguments: [false, true]) func aStreamBothWaysIsAnsweredMessageByMessage(opensEmpty: Bool) async throws {
        try await Self.withCarrier { server, carrier, authorization in
            let name = "grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
            let request = GRPCServerReflectionRequest(messageRequest: .listServices("")).encoded()
            let answered = try await carrier.call(
                name, [request, request, request], kind: .remoteOpen, opensEmpty: opensEmpty,
                authorization: authorization)
            #expect(answered.failure == nil)
            #expect(answered.messages.count == 3)
            #expect(Self.count(server, name, .ok) == 1)
            #expect(server.instance.router.callerUse.streamsOpen.value == 0)
        }
    }

    @Test func aStreamOfTheServersEndsWhenItsClientIsGone() async throws {
        try await Self.withCarrier { server, carrier, authorization in
            let name = "postern.v1.Tokens/WatchRevocations"
            let request = TokensWatchRevocationsRequest().encoded()
            let watched = try await carrier.call(
                name, [request], kind: .remoteClosed, authorization: authorization, answersMax: 0)
            #expect(watched.failure?.code == .cancelled)
            // The server sets no deadline for this stream.
            #expect(watched.deadline == .distantFuture)
            #expect(Self.count(server, name, .cancelled) == 1)
            #expect(server.instance.router.callerUse.streamsOpen.value == 0)
        }
    }

    @Test func whatIsRefusedIsRefusedTheSameWay() async throws {
        try await Self.withCarrier { server, carrier, authorization in
            let get = "postern.v1.Users/Get"
            let missing = UsersGetRequest(uid: "nobody").encoded()
            let elsewhere = UsersGetRequest(tenantID: "nowhere", uid: "nobody").encoded()
            let calls: [(name: String, payload: [UInt8], kind: StreamKind, authorization: Text, reason: String)] = [
                (get, [], .unary, .empty, "CALLER_UNAUTHENTICATED"),
                (get, [], .unary, "Bearer pk_wrong", "CALLER_UNAUTHENTICATED"),
                ("postern.v1.Users/Got", [], .unary, authorization, "UNKNOWN_METHOD"),
                (get, [], .remoteOpen, authorization, "WRONG_METHOD_SHAPE"),
                (get, [0x0A, 0xFF], .unary, authorization, "MALFORMED_MESSAGE"),
                (get, missing, .unary, authorization, "USER_NOT_FOUND"),
                (get, elsewhere, .unary, authorization, "TENANT_NOT_FOUND"),
            ]
            for call in calls {
                let outcome = try await carrier.call(
                    call.name, [call.payload], kind: call.kind, authorization: call.authorization)
                #expect(outcome.failure?.reason == call.reason)
                #expect(outcome.messages.isEmpty)
            }
            #expect(Self.count(server, get, .notFound) == 2)
            #expect(server.instance.router.unknownMethodCalls.value == 1)
        }
    }

    @Test func everyUnaryCallThatWaitsHasADeadline() async throws {
        try await Self.withCarrier { server, carrier, authorization in
            let limits = server.project.limits
            let longest = Instant.now.advanced(by: limits.requestTimeoutMax)
            for timeout in [0, 1_000_000_000, Int64.max] {
                let created = try await carrier.call(
                    "postern.v1.Users/Create", [UsersCreateRequest().encoded()], authorization: authorization,
                    timeoutNanoseconds: timeout)
                let deadline = try #require(created.deadline)
                // The clock goes on between the two.
                #expect(deadline < longest.advanced(by: .minutes(1)), "timeout \(timeout)")
            }
            let late = try await carrier.call(
                "postern.v1.Users/Create", [UsersCreateRequest().encoded()], authorization: authorization,
                timeoutNanoseconds: 1)
            #expect(late.failure?.reason == "DEADLINE_EXCEEDED")
        }
    }

    /// If a handler had another shape than its method, every client would be refused.
    @Test func everyHandlerHasTheShapeThatItsProtoSays() async throws {
        try await withServer { server in
            for method in server.instance.router.registry.all {
                let descriptor = method.descriptor
                let expected: StreamKind =
                    descriptor.requestStreaming ? .remoteOpen : descriptor.responseStreaming ? .remoteClosed : .unary
                #expect(method.kind == expected, "\(descriptor.fullName)")
            }
        }
    }
}
