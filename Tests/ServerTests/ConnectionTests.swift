import Base
import Messages
import Service
import TestSupport
import Testing
import Wire

/// What the protocol promises beside calls and answers, on real connections: HELLO, PING, credit, cancels, deadlines,
/// draining, reflection.
@Suite struct ConnectionTests {
    private static func send(_ client: RawClient, _ frames: ControlFrame...) throws {
        var buffer = ByteBuffer()
        for frame in frames { frame.append(to: &buffer) }
        try client.send(buffer.copyBytes())
    }

    private static func restrictSignUp(_ client: RawClient) throws {
        let settings = Messages.Tenant(client: ClientConfig(permissions: ClientPermissions(disabledUserSignup: true)))
        let _: TenantsUpdateResponse = try client.call(
            "postern.v1.Tenants/Update",
            TenantsUpdateRequest(
                tenant: settings,
                updateMask: ProtobufFieldMask(paths: ["client.permissions.disabled_user_signup"])))
    }

    private static func beRefused(_ client: RawClient) {
        _ = failure {
            let _: AccountsSignUpResponse = try client.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(email: "ada@example.com", password: Secret([UInt8]("correct horse".utf8))))
        }
    }

    @Test func helloTellsTheLimitsOfTheServer() async throws {
        try await withServer(configure: { $0.limits.streamsMax = 99 }) { server in
            let hello = try server.connect().hello()
            #expect(hello.protocolVersion == 1)
            #expect(hello.streamsMax == 99)
            #expect(hello.frameBytesMax == 4 * 1024 * 1024)
            #expect(hello.software.string.hasPrefix("postern/"))
        }
    }

    @Test func aPingIsAnsweredWithItsBytes() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try client.hello()
            try Self.send(client, .ping(0x0123_4567_89AB_CDEF, ack: false))
            let frame = try client.readFrame()
            #expect(frame.header.type == .ping && frame.header.flags.contains(.ack))
            #expect(frame.payload == [0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF])
        }
    }

    @Test func theRequestIDIsEchoedOrMade() async throws {
        try await withServer { server in
            let client = try server.connect()
            func requestID(_ metadata: [OutgoingMetadata.Entry]) throws -> Text? {
                try client.send(
                    client.request(
                        "postern.v1.Users/List", UsersListRequest(), stream: client.nextStream(), metadata: metadata))
                let answer = try WireResponse(decoding: try client.readFrame().payload)
                return answer.metadata.first { $0.key == "x-request-id" }?.value
            }
            #expect(try requestID([OutgoingMetadata.Entry(key: "x-request-id", value: "abc-1")]) == "abc-1")
            let made = try requestID([])
            #expect(made?.isEmpty == false)
            #expect(try requestID([]) != made)
            for (byteCount, isEchoed) in [(0, false), (1, true), (128, true), (129, false)] {
                let given = Text(String(repeating: "r", count: byteCount))
                let answered = try requestID([OutgoingMetadata.Entry(key: "x-request-id", value: given)])
                #expect(answered?.isEmpty == false && (answered == given) == isEchoed, "\(byteCount)")
            }
        }
    }

    // MARK: Deadlines and cancelling

    @Test(arguments: ["postern.v1.Users/RevokeTokens", "postern.v1.Tenants/WatchDenials"])
    func aCallPastItsDeadlineIsAnsweredSo(_ method: String) async throws {
        try await withServer { server in
            let client = try server.connect()
            let isStream = method.hasSuffix("WatchDenials")
            let stream = client.nextStream()
            try client.send(
                client.request(
                    method, UsersGetRequest(), stream: stream, kind: isStream ? .remoteClosed : .unary,
                    timeoutNanoseconds: 1))
            let refused = failure {
                _ = try RawClient.response(try client.readFrame(), returning: UsersGetResponse.self)
            }
            #expect(refused.code == .deadlineExceeded)
        }
    }

    /// The connection itself ends the call, which has begun already.
    @Test func aDeadlineNamesItsRequest() async throws {
        try await withServer { server in
            let client = try server.connect()
            let given = OutgoingMetadata.Entry(key: "x-request-id", value: "late-1")
            try client.send(
                client.request(
                    "postern.v1.Tenants/WatchDenials", TenantsWatchDenialsRequest(), stream: client.nextStream(),
                    kind: .remoteClosed, metadata: [given], timeoutNanoseconds: 100_000_000))
            let envelope = try WireResponse(decoding: try client.readFrame().payload)
            #expect(envelope.status?.code == StatusCode.deadlineExceeded.rawValue)
            #expect(envelope.metadata.first { $0.key == "x-request-id" }?.value == "late-1")
            let details = envelope.status?.details.map(\.typeURL) ?? []
            #expect(details.contains("type.googleapis.com/google.rpc.RequestInfo"))
        }
    }

    @Test func aCancelledStreamGivesItsPlaceBack() async throws {
        try await withServer(configure: {
            $0.limits.streamsMax = 4
            $0.limits.cancelsPerSecondMax = 10_000
        }) { server in
            let client = try server.connect()
            _ = try client.hello()
            for round in 0..<50 {
                let streams = (0..<4).map { _ in client.nextStream() }
                for stream in streams {
                    try client.send(
                        client.request(
                            "postern.v1.Tenants/WatchDenials", TenantsWatchDenialsRequest(), stream: stream,
                            kind: .remoteClosed))
                }
                for stream in streams { try Self.send(client, .cancel(stream: stream, .cancelled)) }
                // A call finds a free stream again once the cancelled tasks have ended.
                var reason = "TOO_MANY_STREAMS"
                for _ in 0..<1_000 where reason == "TOO_MANY_STREAMS" { reason = try Self.listReason(client) }
                #expect(reason == "", "round \(round)")
            }
        }
    }

    /// The reason with which a Users.List is refused; passes over the frames of other streams.
    private static func listReason(_ client: RawClient) throws -> String {
        let stream = client.nextStream()
        try client.send(client.request("postern.v1.Users/List", UsersListRequest(), stream: stream))
        while true {
            let frame = try client.readFrame()
            guard frame.header.stream == stream else { continue }
            return failure { _ = try RawClient.response(frame, returning: UsersListResponse.self) }.reason
        }
    }

    // MARK: Credit

    @Test func aStreamSendsNoMoreThanItsCredit() async throws {
        try await withServer { server in
            let admin = try server.connect()
            try Self.restrictSignUp(admin)
            // A message may use up more than the credit that is left; then the next one waits for more.
            let (thrifty, stream) = try Self.watchDenials(server, window: 1)
            let (generous, _) = try Self.watchDenials(server, window: 100_000)
            for _ in 0..<3 { Self.beRefused(admin) }
            #expect(try (0..<3).map { _ in try Self.sequence(generous.readFrame()) } == [1, 2, 3])
            #expect(try Self.sequence(thrifty.readFrame()) == 1)
            try Self.send(thrifty, .ping(2, ack: false))
            #expect(try thrifty.readFrame().header.type == .ping)
            try Self.send(thrifty, .window(stream: stream, credit: 100_000))
            #expect(try (0..<2).map { _ in try Self.sequence(thrifty.readFrame()) } == [2, 3])
        }
    }

    private static func sequence(_ frame: RawClient.Frame) throws -> Int64? {
        #expect(frame.header.type == .data)
        return try TenantsWatchDenialsResponse(decoding: frame.payload).denial?.sequence
    }

    /// A client that follows the refusals, from the next one on.
    private static func watchDenials(_ server: TestServer, window: UInt32) throws -> (RawClient, stream: UInt32) {
        let client = try server.connect()
        _ = try client.hello(WireHello(protocolVersion: 1, initialWindow: window, software: "raw"))
        let stream = client.nextStream()
        try client.send(
            client.request(
                "postern.v1.Tenants/WatchDenials", TenantsWatchDenialsRequest(), stream: stream, kind: .remoteClosed))
        // The answer to a PING tells that the stream is open.
        try send(client, .ping(1, ack: false))
        #expect(try client.readFrame().header.type == .ping)
        return (client, stream)
    }

    // MARK: Draining

    @Test func drainingTellsClientsFinishesCallsAndCloses() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try client.hello()
            let health = client.nextStream()
            try client.send(
                client.request(
                    "grpc.health.v1.Health/Watch", GRPCHealthCheckRequest(), stream: health, kind: .remoteClosed))
            let first = try client.readFrame()
            #expect(try GRPCHealthCheckResponse(decoding: first.payload).status == .serving)
            let drain = Task { await server.instance.drain() }
            // A last call: it is sent before the client knows of the draining, and answered all the same.
            let call = client.nextStream()
            try client.send(
                client.request(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: "last"), stream: call))
            var sawNotServing = false
            var sawAnswer = false
            var goAways: [UInt32] = []
            for frame in try client.readUntilClosed() {
                switch frame.header.type {
                case .data where frame.header.stream == health && !frame.payload.isEmpty:
                    sawNotServing = try GRPCHealthCheckResponse(decoding: frame.payload).status == .notServing
                case .response where frame.header.stream == call:
                    let made = try RawClient.response(frame, returning: UsersCreateResponse.self)
                    sawAnswer = made.user?.uid == "last"
                case .goAway: goAways.append(try WireGoAway(decoding: frame.payload).lastStreamID)
                default: break
                }
            }
            await drain.value
            #expect(sawNotServing && sawAnswer)
            #expect(goAways.first == UInt32(Int32.max))
            #expect(goAways.last ?? 0 >= call)
        }
    }

    @Test func whoAnswersThePingOfAStopIsToldAtOnceWhatWasTaken() async throws {
        try await withServer { server in
            let client = try server.connect()
            _ = try client.hello()
            let drain = Task { await server.instance.drain() }
            #expect(try client.readFrame().header.type == .goAway)
            let ping = try client.readFrame()
            #expect(ping.header.type == .ping && !ping.header.flags.contains(.ack))
            let opaque = ping.payload.withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) }
            try Self.send(client, .ping(opaque, ack: true))
            #expect(try client.readUntilClosed().map(\.header.type) == [.goAway])
            await drain.value
        }
    }

    // MARK: Reflection

    @Test func reflectionListsThePublicServicesAndNothingInternal() async throws {
        try await withServer { server in
            let client = try server.connect()
            func ask(_ request: GRPCServerReflectionRequest.MessageRequest) throws -> GRPCServerReflectionResponse {
                let stream = client.nextStream()
                try client.send(
                    client.request(
                        "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                        GRPCServerReflectionRequest(messageRequest: request), stream: stream, kind: .remoteOpen))
                var end = ByteBuffer()
                end.appendDataEnd(stream: stream)
                let frame = try client.readFrame()
                try client.send(end.copyBytes())
                _ = try client.readFrame()
                return try GRPCServerReflectionResponse(decoding: frame.payload)
            }
            guard case .listServicesResponse(let list) = try ask(.listServices("")).messageResponse else {
                Issue.record("no list of services")
                return
            }
            let names = list.service.map(\.name.string)
            for name in ["Accounts", "Tokens", "Users", "Tenants", "Project"] {
                #expect(names.contains("postern.v1.\(name)"))
            }
            #expect(names.contains("grpc.health.v1.Health"))
            #expect(!names.contains { $0.contains("store") || $0.contains("wire") })
            guard
                case .fileDescriptorResponse(let files) = try ask(.fileContainingSymbol("postern.v1.Accounts"))
                    .messageResponse
            else {
                Issue.record("no file of postern.v1.Accounts")
                return
            }
            #expect(files.fileDescriptorProto.count > 1)
            guard
                case .errorResponse(let error) = try ask(.fileByFilename("postern/store/v1/store.proto"))
                    .messageResponse
            else {
                Issue.record("the storage records are told")
                return
            }
            #expect(error.errorCode == StatusCode.notFound.rawValue)
        }
    }
}
