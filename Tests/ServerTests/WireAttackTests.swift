import Base
import Crypto
import Glibc
import Identity
import Messages
import Service
import TestSupport
import Testing
import Wire

/// Malformed, truncated, slow and hostile connections against a whole server. Every test ends with a canary: another
/// connection is still served. The case ids are those of our list of attacks.
@Suite struct WireAttackTests {
    static let check = "grpc.health.v1.Health/Check"

    func expectCanary(_ server: TestServer) throws {
        let client = try server.connect(authenticated: false)
        let answer = try client.call(
            Self.check, GRPCHealthCheckRequest(), returning: GRPCHealthCheckResponse.self)
        #expect(answer.status == .serving)
    }

    func header(_ length: UInt32, stream: UInt32, type: UInt8 = 1, flags: UInt8 = 0) -> [UInt8] {
        var bytes: [UInt8] = []
        withUnsafeBytes(of: length.bigEndian) { bytes += $0 }
        withUnsafeBytes(of: stream.bigEndian) { bytes += $0 }
        return bytes + [type, flags]
    }

    // W01
    @Test(arguments: [UInt32.max, 1 << 31, UInt32(Int32.max), 1 << 24])
    func aLengthAboveTheHardCapEndsTheConnection(_ length: UInt32) async throws {
        try await withServer { server in
            let client = try server.connect()
            try client.send(header(length, stream: 1))
            #expect(try client.readUntilClosed().isEmpty)
            try expectCanary(server)
        }
    }

    // W01, W27: above the limit of the moment, below the hard cap
    @Test func aFrameAboveTheUnauthenticatedLimitIsAnsweredAndSkipped() async throws {
        try await withServer(configure: { $0.limits.framePayloadMaxUnauthenticated = 1_000 }) { server in
            let client = try server.connect(authenticated: false)
            try client.send(header(2_000, stream: 1) + [UInt8](repeating: 0, count: 2_000))
            let failure = #expect(throws: Failure.self) {
                try RawClient.response(try client.readFrame(), returning: GRPCHealthCheckResponse.self)
            }
            #expect(failure?.reason == "FRAME_TOO_LARGE")
            _ = client.nextStream()
            _ = try client.call(Self.check, GRPCHealthCheckRequest(), returning: GRPCHealthCheckResponse.self)
        }
    }

    // W02
    @Test func anEmptyRequestIsAnsweredAsInvalid() async throws {
        try await withServer { server in
            let client = try server.connect()
            try client.send(header(0, stream: 1))
            let failure = #expect(throws: Failure.self) {
                try RawClient.response(try client.readFrame(), returning: GRPCHealthCheckResponse.self)
            }
            #expect(failure?.code == .invalidArgument)
        }
    }

    // W03
    @Test(arguments: [1, 9, 10, 30])
    func aTruncatedFrameGetsNoAnswer(_ byteCount: Int) async throws {
        try await withServer { server in
            let client = try server.connect()
            let whole = client.request(Self.check, GRPCHealthCheckRequest(), stream: 1)
            try client.send(Array(whole.prefix(byteCount)))
            client.closeForWriting()
            #expect(try client.readUntilClosed().isEmpty)
            try expectCanary(server)
        }
    }

    // W04: the deadline of a frame is absolute, whatever trickles in
    @Test func aFrameThatTricklesInIsCutOff() async throws {
        try await withServer(configure: { $0.limits.frameTimeout = .milliseconds(200) }) { server in
            let client = try server.connect()
            let whole = client.request(
                Self.check, GRPCHealthCheckRequest(service: Text(String(repeating: "x", count: 4_000))), stream: 1)
            var isCutOff = false
            for byte in whole {
                do { try client.send([byte]) } catch {
                    isCutOff = true
                    break
                }
                usleep(5_000)
            }
            #expect(isCutOff)
            try expectCanary(server)
        }
    }

    // W05, W06
    @Test func framesAreFoundHoweverTheyAreCut() async throws {
        try await withServer { server in
            let client = try server.connect()
            let first = client.request(Self.check, GRPCHealthCheckRequest(), stream: 1)
            let second = client.request(Self.check, GRPCHealthCheckRequest(), stream: 3)
            for byte in first { try client.send([byte]) }
            #expect(try client.readFrame().header.stream == 1)
            let third = client.request(Self.check, GRPCHealthCheckRequest(), stream: 5)
            try client.send(second + third.prefix(third.count / 2))
            #expect(try client.readFrame().header.stream == 3)
            try client.send(Array(third.suffix(from: third.count / 2)))
            #expect(try client.readFrame().header.stream == 5)
        }
    }

    // W08
    @Test func aClientThatStopsSendingStillGetsItsAnswer() async throws {
        try await withServer { server in
            let client = try server.connect()
            let signUp = AccountsSignUpRequest(email: "ann@example.com", password: Secret("secret1"))
            try client.send(client.request("postern.v1.Accounts/SignUp", signUp, stream: 1))
            client.closeForWriting()
            let frames = try client.readUntilClosed()
            #expect(frames.map(\.header.stream) == [1])
        }
    }

    // W09
    @Test func aSilentConnectionIsClosed() async throws {
        try await withServer(configure: { $0.limits.firstRequestTimeout = .milliseconds(100) }) { server in
            let client = try server.connect()
            #expect(try client.readUntilClosed().isEmpty)
        }
    }

    // W10
    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}", "garbage garbage garbage",
    ])
    func anotherProtocolIsClosedAtOnce(_ opening: String) async throws {
        // The preface of HTTP/2 opens a connection of gRPC, which is closed after a time when no request comes.
        let isGRPC = opening.hasPrefix("PRI ")
        try await withServer(configure: { if isGRPC { $0.limits.firstRequestTimeout = .seconds(1) } }) { server in
            let client = try server.connect()
            try client.send([UInt8](opening.utf8))
            #expect(try client.readUntilClosed().isEmpty)
            try expectCanary(server)
        }
    }

    // W11, W31
    @Test func callsAboveTheLimitInFlightAreRefused() async throws {
        try await withServer(configure: { $0.limits.streamsMaxUnauthenticated = 4 }) { server in
            let client = try server.connect(authenticated: false)
            for _ in 0..<6 {
                let watch = client.request(
                    "grpc.health.v1.Health/Watch", GRPCHealthCheckRequest(), stream: client.nextStream(),
                    kind: .remoteClosed)
                try client.send(watch)
            }
            var refused: [UInt32] = []
            for _ in 0..<6 {
                let frame = try client.readFrame()
                if frame.header.type == .response { refused.append(frame.header.stream) }
            }
            #expect(refused == [9, 11])
            try expectCanary(server)
        }
    }

    // W12
    @Test func aFloodOfSignInsIsShedWhileOthersAreServed() async throws {
        try await withServer(configure: {
            $0.passwordWorkers = 1
            $0.limits.passwordQueueMax = 2
            $0.limits.passwordQueuePerTenantMax = 2
            $0.project.passwordProfile = .standard
        }) { server in
            let client = try server.connect()
            // Authenticates first: before that, only 16 calls may be in flight.
            _ = try client.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)
            var burst: [UInt8] = []
            for index in 0..<20 {
                let signUp = AccountsSignUpRequest(email: Text("u\(index)@example.com"), password: Secret("secret1"))
                burst += client.request("postern.v1.Accounts/SignUp", signUp, stream: client.nextStream())
            }
            try client.send(burst)
            try expectCanary(server)
            var shed = 0
            for _ in 0..<20 {
                do {
                    _ = try RawClient.response(try client.readFrame(), returning: AccountsSignUpResponse.self)
                } catch let failure as Failure {
                    #expect(failure.code == .resourceExhausted)
                    #expect(failure.retryAfter != nil)
                    shed += 1
                }
            }
            #expect(shed > 0 && shed < 20)
        }
    }

    // W15
    @Test func aConnectionAboveTheLimitIsClosedAndTheOthersGoOn() async throws {
        try await withServer(configure: { $0.limits.connectionsMax = 3 }) { server in
            let clients = try (0..<3).map { _ in try server.connect() }
            func callAll() throws {
                for client in clients {
                    _ = try client.call(
                        "postern.v1.Project/Stats", ProjectStatsRequest(), returning: ProjectStatsResponse.self)
                }
            }
            try callAll()
            #expect(try server.connect().readUntilClosed().isEmpty)
            try callAll()
        }
    }

    // W28
    @Test func everyAnswerGoesToTheConnectionAndStreamThatAsked() async throws {
        try await withServer { server in
            let clients = try (0..<40).map { _ in try server.connect() }
            for (index, client) in clients.enumerated() {
                var burst: [UInt8] = []
                for stream: UInt32 in [1, 3, 5] {
                    let id = OutgoingMetadata.Entry(key: "x-request-id", value: Text("c\(index)-s\(stream)"))
                    burst += client.request(Self.check, GRPCHealthCheckRequest(), stream: stream, metadata: [id])
                }
                try client.send(burst)
            }
            for (index, client) in clients.enumerated() {
                for stream: UInt32 in [1, 3, 5] {
                    let frame = try client.readFrame()
                    let envelope = try WireResponse(decoding: frame.payload)
                    #expect(frame.header.stream == stream)
                    #expect(envelope.metadata.map(\.value) == [Text("c\(index)-s\(stream)")])
                }
            }
        }
    }

    // W36, W50
    @Test func aClientThatResetsDuringAWriteLeavesNoHalfAccount() async throws {
        try await withServer { server in
            for index in 0..<30 {
                let client = try server.connect()
                let create = UsersCreateRequest(uid: Text("u\(index)"), email: Text("u\(index)@example.com"))
                try client.send(client.request("postern.v1.Users/Create", create, stream: 1))
                client.reset()
            }
            let client = try server.connect()
            for index in 0..<30 {
                let byID = try? client.call(
                    "postern.v1.Users/Get", UsersGetRequest(uid: Text("u\(index)")), returning: UsersGetResponse.self)
                let byEmail = try? client.call(
                    "postern.v1.Users/GetByEmail", UsersGetByEmailRequest(email: Text("u\(index)@example.com")),
                    returning: UsersGetByEmailResponse.self)
                if byID == nil { continue }
                #expect(byID?.user == byEmail?.user)
            }
        }
    }

    // W51
    @Test func anIdleConnectionIsClosed() async throws {
        try await withServer(configure: { $0.limits.idleTimeout = .milliseconds(500) }) { server in
            let client = try server.connect()
            _ = try client.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)
            // A refusal leaves no call behind when the server sets the connection's timer. After an answer that comes
            // later, the timer waits for the memory's trimming, some seconds.
            _ = try? client.call("postern.v1.Users/Nothing", UsersListRequest(), returning: UsersListResponse.self)
            #expect(try client.readUntilClosed().isEmpty)
        }
    }
}
