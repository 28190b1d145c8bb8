import Base
import Messages
import Testing
import Wire

private struct ClientSession {
    var state: ClientConnectionState

    /// `server` nil: HELLO is not answered yet.
    init(server: WireHello? = WireHello(protocolVersion: 1, streamsMax: 4), usingExtensions: Bool = true) {
        state = ClientConnectionState(limits: Limits(), software: "test", usingExtensions: usingExtensions)
        if let server, usingExtensions {
            let action = receive(0x10, 0, server.encoded())
            precondition(action == .welcomed)
        }
    }

    @discardableResult
    mutating func receive(_ type: UInt8, _ stream: UInt32, _ payload: [UInt8] = [], flags: UInt8 = 0) -> ClientAction {
        let header = FrameHeader(
            payloadByteCount: UInt32(payload.count), stream: stream, type: FrameType(rawValue: type),
            flags: FrameFlags(rawValue: flags))
        return payload.withUnsafeBytes { state.received(header, payload: $0) }
    }

    mutating func open(_ kind: StreamKind = .unary, count: Int = 1) throws {
        for _ in 0..<count { _ = try state.openStream(kind) }
    }
}

@Suite struct ClientConnectionStateTests {
    @Test func `Stream ids are odd and increase`() throws {
        var session = ClientSession()
        #expect(try session.state.openStream(.unary) == 1)
        #expect(try session.state.openStream(.unary) == 3)
        #expect(session.receive(2, 1) == .response(stream: 1))
        #expect(try session.state.openStream(.unary) == 5)
        #expect(session.state.streamsInFlight == 2)
    }

    @Test func `As many streams as the server takes are open at once`() throws {
        var session = ClientSession()
        try session.open(count: 4)
        #expect(throws: StreamRefusal.busy) { try session.state.openStream(.unary) }
        session.receive(2, 3)
        #expect(throws: Never.self) { try session.state.openStream(.unary) }
    }

    @Test func `Until the server's HELLO is there, the client keeps to what every server takes`() throws {
        var session = ClientSession(server: nil)
        #expect(session.state.peerPayloadMax == 64 * 1024)
        try session.open(count: 16)
        #expect(throws: StreamRefusal.busy) { try session.state.openStream(.unary) }
        #expect(session.state.cancel(stream: 1, .cancelled) == nil)
        #expect(session.state.ping(1) == nil)
        let hello = WireHello(protocolVersion: 1, frameBytesMax: 1_000_000, streamsMax: 100, software: "posternd")
        #expect(session.receive(0x10, 0, hello.encoded()) == .welcomed)
        #expect(session.state.server == hello)
        #expect(session.state.peerPayloadMax == 1_000_000)
        #expect(session.state.streamsMax == 100)
        #expect(session.state.cancel(stream: 3, .cancelled) == .cancel(stream: 3, .cancelled))
    }

    @Test func `The client's HELLO says who it is and what it takes`() {
        let state = ClientConnectionState(limits: Limits(), software: "test", authorization: "Bearer x")
        #expect(
            state.hello
                == WireHello(
                    protocolVersion: 1, frameBytesMax: 0xFF_FFFF, initialWindow: 256 * 1024, software: "test",
                    authorization: "Bearer x"))
    }

    @Test func `A server that says no to HELLO speaks stock ttrpc`() throws {
        var session = ClientSession(server: nil)
        try session.open(.remoteOpen)
        session.state.sentData(stream: 1, payloadByteCount: 100_000)
        #expect(!session.state.maySendData(stream: 1))
        #expect(session.receive(2, 0, field(1, field(1, 3))) == .welcomed)
        #expect(session.state.server == nil)
        #expect(session.state.maySendData(stream: 1))
        #expect(session.state.cancel(stream: 1, .cancelled) == nil)
        #expect(session.receive(2, 1) == .none)
    }

    @Test func `A server that ignores HELLO speaks stock ttrpc`() throws {
        var session = ClientSession(server: nil)
        try session.open()
        #expect(session.receive(2, 1) == .response(stream: 1))
        #expect(session.receive(0x10, 0, [8, 1]) == .close(.helloNotFirst))
    }

    @Test func `Without extensions no control frame is accepted`() {
        for type in [0x11, 0x12, 0x13, 0x14] as [UInt8] {
            var session = ClientSession(usingExtensions: false)
            #expect(session.state.hello == nil)
            #expect(session.receive(type, 1) == .close(.extensionWithoutHello))
        }
    }

    @Test func `A stream ends by RESPONSE, by DATA that closes it, or by CANCEL`() throws {
        var session = ClientSession()
        try session.open(.remoteClosed, count: 4)
        #expect(session.receive(3, 1, [7]) == .data(stream: 1, last: false))
        #expect(session.receive(2, 1) == .response(stream: 1))
        #expect(session.receive(3, 3, [], flags: 5) == .ended(stream: 3))
        #expect(session.receive(3, 5, [7], flags: 1) == .data(stream: 5, last: true))
        #expect(session.receive(0x13, 7, WireCancel(code: .refused).encoded()) == .cancelled(stream: 7, .refused))
        #expect(session.state.streamsInFlight == 0)
        for stream in [1, 3, 5, 7, 9] as [UInt32] {
            #expect(session.receive(2, stream) == .none)
            #expect(session.receive(3, stream, [1]) == .none)
            #expect(session.receive(0x13, stream, [8, 1]) == .none)
            #expect(session.receive(0x14, stream, [8, 1]) == .none)
        }
    }

    @Test func `What comes for a cancelled stream is dropped`() throws {
        var session = ClientSession()
        try session.open(.remoteClosed)
        #expect(session.state.cancel(stream: 1, .deadlineExceeded) == .cancel(stream: 1, .deadlineExceeded))
        #expect(session.state.cancel(stream: 1, .cancelled) == nil)
        #expect(session.receive(3, 1, [1]) == .none)
        #expect(session.receive(2, 1) == .none)
    }

    @Test func `The client sends DATA within its credit`() throws {
        var session = ClientSession(server: WireHello(protocolVersion: 1, initialWindow: 50))
        try session.open(.remoteOpen)
        #expect(session.state.maySendData(stream: 1))
        session.state.sentData(stream: 1, payloadByteCount: 40)
        #expect(!session.state.maySendData(stream: 1))
        #expect(session.receive(0x14, 1, WireWindow(credit: 5).encoded()) == .sendWindowOpened(stream: 1))
        session.state.closedSending(stream: 1)
        #expect(!session.state.maySendData(stream: 1))
        #expect(session.receive(0x14, 1, field(1, 0x7FFF_FFFF)) == .close(.windowOverflow))
    }

    @Test func `A larger window in the server's HELLO counts for streams that are open`() throws {
        var session = ClientSession(server: nil)
        try session.open(.remoteOpen)
        session.state.sentData(stream: 1, payloadByteCount: 65_536)
        #expect(!session.state.maySendData(stream: 1))
        #expect(session.receive(0x10, 0, WireHello(protocolVersion: 1, initialWindow: 65_547).encoded()) == .welcomed)
        #expect(session.state.maySendData(stream: 1))
    }

    @Test func `The server is held to the window, and gets credit back`() throws {
        var session = ClientSession()
        try session.open(.remoteClosed)
        let half = [UInt8](repeating: 0, count: 128 * 1024 - 10)
        #expect(session.receive(3, 1, half) == .data(stream: 1, last: false))
        #expect(
            session.state.consumed(stream: 1, payloadByteCount: half.count) == .window(stream: 1, credit: 128 * 1024))
        for _ in 0..<2 { #expect(session.receive(3, 1, half) == .data(stream: 1, last: false)) }
        #expect(session.receive(3, 1, half) == .close(.windowExceeded))
    }

    @Test func `After GOAWAY the unprocessed streams may be sent elsewhere, the others end`() throws {
        var session = ClientSession()
        try session.open(count: 3)
        let first = WireGoAway(lastStreamID: 0x7FFF_FFFF, code: .shutdown).encoded()
        #expect(session.receive(0x12, 0, first) == .goAway(.shutdown, unprocessed: []))
        #expect(throws: StreamRefusal.connectionSpent) { try session.state.openStream(.unary) }
        let second = WireGoAway(lastStreamID: 1, code: .shutdown).encoded()
        #expect(session.receive(0x12, 0, second) == .goAway(.shutdown, unprocessed: [3, 5]))
        #expect(session.receive(2, 1) == .response(stream: 1))
        #expect(session.state.streamsInFlight == 0)
    }

    @Test func `When the connection is lost, what was in flight is uncertain`() throws {
        var session = ClientSession()
        try session.open(count: 3)
        session.receive(2, 3)
        #expect(session.state.connectionLost() == [1, 5])
        #expect(session.state.connectionLost() == [])
        #expect(session.state.isClosed)
        #expect(throws: StreamRefusal.connectionSpent) { try session.state.openStream(.unary) }
        #expect(session.receive(2, 1) == .none)
    }

    @Test func `Pings go both ways`() {
        var session = ClientSession()
        let opaque: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 7]
        #expect(session.receive(0x11, 0, opaque) == .pong(7))
        #expect(session.receive(0x11, 0, opaque, flags: 1) == .none)
        #expect(session.state.ping(7) == .ping(7, ack: false))
        #expect(session.receive(0x11, 0, opaque, flags: 1) == .pingAcknowledged(7))
    }

    @Test(
        arguments: [
            (0x01, 1, [], 0, .frameForOtherSide), (0x10, 0, [8, 1], 0, .helloNotFirst),
            (0x80, 0, [], 0, .unknownCriticalFrame),
            (0x11, 1, [0, 0, 0, 0, 0, 0, 0, 0], 0, .malformedControlFrame), (0x12, 1, [], 0, .malformedControlFrame),
            (0x12, 0, [0xFF], 0, .malformedControlFrame), (0x13, 1, [0xFF], 0, .malformedControlFrame),
            (0x14, 1, [], 0, .malformedControlFrame), (0x03, 1, [1], 0, .malformedControlFrame),
        ] as [(UInt8, UInt32, [UInt8], UInt8, CloseReason)])
    func `A server that breaks the protocol is left`(
        type: UInt8, stream: UInt32, payload: [UInt8], flags: UInt8, reason: CloseReason
    ) throws {
        var session = ClientSession()
        try session.open()
        #expect(session.receive(type, stream, payload, flags: flags) == .close(reason))
        #expect(session.state.connectionLost() == [1])
    }

    @Test func `Unknown frames are skipped`() throws {
        var session = ClientSession()
        #expect(session.receive(0x7F, 0, [1, 2, 3]) == .none)
        #expect(session.receive(0x04, 1) == .none)
    }

    @Test func `Server and client understand each other`() throws {
        var server = ConnectionState(limits: SharedLimits(Limits()), software: "server")
        var client = ClientConnectionState(limits: Limits(), software: "client")
        let now = Instant(nanoseconds: 0)
        let stream = try client.openStream(.remoteOpen)
        let hello = try #require(client.hello)
        var toServer = ByteBuffer(bytes { $0.appendHello(hello) })
        toServer.appendRequest(stream: stream, kind: .remoteOpen, service: "s", method: "m") { _ in }
        toServer.appendData(stream: stream) { $0.append(5) }
        client.sentData(stream: stream, payloadByteCount: 1)
        toServer.appendDataEnd(stream: stream)
        client.closedSending(stream: stream)

        var seen: [ConnectionAction] = []
        var toClient = ByteBuffer()
        var decoder = FrameDecoder(payloadHardMax: Limits().framePayloadHardMax)
        while case .frame(let header, let payload) = decoder.next(
            in: &toServer, payloadMax: server.payloadMax, now: now)
        {
            let action = server.received(header, payload: payload, now: now)
            if action == .welcome { toClient.appendHello(server.hello) }
            seen.append(action)
        }
        #expect(
            seen == [
                .welcome, .startRequest(stream: 1, .remoteOpen), .data(stream: 1, last: false),
                .remoteClosed(stream: 1),
            ])
        toClient.appendData(stream: stream) { $0.append(6) }
        server.sentData(stream: stream, payloadByteCount: 1)
        toClient.appendDataEnd(stream: stream)
        #expect(server.finished(stream: stream) == .none)

        var answers: [ClientAction] = []
        var clientDecoder = FrameDecoder(payloadHardMax: Limits().framePayloadHardMax)
        while case .frame(let header, let payload) = clientDecoder.next(in: &toClient, payloadMax: .max, now: now) {
            answers.append(client.received(header, payload: payload))
        }
        #expect(answers == [.welcomed, .data(stream: 1, last: false), .ended(stream: 1)])
    }
}
