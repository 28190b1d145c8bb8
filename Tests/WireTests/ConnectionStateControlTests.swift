import Base
import Messages
import Testing
import Wire

@Suite struct ConnectionStateControlTests {
    @Test func `A ping is answered with its bytes`() {
        var session = Session()
        #expect(session.send(0x11, 0, [1, 2, 3, 4, 5, 6, 7, 8]) == .pong(0x0102_0304_0506_0708))
        for (stream, payload) in [(1, [UInt8](repeating: 0, count: 8)), (0, [1, 2, 3])] as [(UInt32, [UInt8])] {
            var session = Session()
            #expect(
                session.send(0x11, stream, payload)
                    == .close(.malformedControlFrame, farewell: .goAway(lastStream: 0, .malformedControlFrame)))
        }
    }

    @Test func `Only the answer to our ping is news`() {
        var session = Session()
        let opaque: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 7]
        #expect(session.send(0x11, 0, opaque, flags: 1) == .none)
        #expect(session.state.ping(7) == .ping(7, ack: false))
        #expect(session.send(0x11, 0, [0, 0, 0, 0, 0, 0, 0, 8], flags: 1) == .none)
        #expect(session.send(0x11, 0, opaque, flags: 1) == .pingAcknowledged(7))
        #expect(session.send(0x11, 0, opaque, flags: 1) == .none)
    }

    @Test func `Pings are limited per second`() {
        var limits = Limits()
        limits.pingsPerSecondMax = 2
        var session = Session(limits: limits)
        let opaque = [UInt8](repeating: 1, count: 8)
        for _ in 0..<2 { #expect(session.send(0x11, 0, opaque) == .pong(0x0101_0101_0101_0101)) }
        session.now = session.now.advanced(by: .seconds(1))
        for _ in 0..<2 { #expect(session.send(0x11, 0, opaque, flags: 1) == .none) }
        #expect(session.send(0x11, 0, opaque) == .close(.tooManyPings, farewell: .goAway(lastStream: 0, .tooManyPings)))
    }

    @Test func `A graceful stop takes two steps and lets the work end`() {
        var session = Session()
        session.request(1)
        #expect(session.state.beginDrain() == .reply(.goAway(lastStream: 0x7FFF_FFFF, .shutdown)))
        #expect(session.request(3) == .startRequest(stream: 3, .unary))
        #expect(session.state.finishDrain() == .reply(.goAway(lastStream: 3, .shutdown)))
        #expect(session.request(5) == .reply(.cancel(stream: 5, .refused)))
        #expect(session.state.finished(stream: 1) == .none)
        #expect(session.state.wantsAnswer(stream: 3))
        #expect(session.state.finished(stream: 3) == .close(.shutdown, farewell: nil))
        #expect(session.state.isClosed)
        #expect(session.request(7) == .none)
    }

    @Test func `An idle connection closes at the second step`() {
        var session = Session()
        _ = session.state.beginDrain()
        #expect(session.state.finishDrain() == .close(.shutdown, farewell: .goAway(lastStream: 0, .shutdown)))
    }

    @Test func `A stock client is told by UNAVAILABLE`() {
        var session = Session(hello: nil)
        session.request(1)
        #expect(session.state.beginDrain() == .none)
        #expect(session.request(3) == .startRequest(stream: 3, .unary))
        #expect(session.state.finishDrain() == .none)
        #expect(session.request(5) == .respondFailure(stream: 5, .shuttingDown))
        _ = session.state.finished(stream: 3)
        #expect(session.state.finished(stream: 1) == .close(.shutdown, farewell: nil))
    }

    @Test func `A client that says goodbye gets its answers`() {
        var session = Session()
        session.request(1)
        let goAway = WireGoAway(code: .shutdown, text: "bye").encoded()
        #expect(session.send(0x12, 0, goAway) == .none)
        #expect(session.request(3) == .reply(.cancel(stream: 3, .refused)))
        #expect(session.state.wantsAnswer(stream: 1))
        #expect(session.state.finished(stream: 1) == .close(.peerLeft, farewell: nil))
    }

    @Test(arguments: CloseReason.allCases) func `GOAWAY says why, in a frame that reads`(reason: CloseReason) throws {
        let written = bytes { ControlFrame.goAway(lastStream: 9, reason).append(to: &$0) }
        let header = try #require(written.withUnsafeBytes { FrameHeader.read($0) })
        #expect(header.type == .goAway)
        #expect(header.stream == 0)
        let message = try WireGoAway(decoding: Array(written[10...]))
        #expect(message.lastStreamID == 9)
        #expect(message.code == reason.code)
        #expect(message.text == Text(reason.text))
    }

    @Test(arguments: StreamError.allCases) func `A stream's error is a failure a client can tell apart`(
        error: StreamError
    ) {
        #expect([.invalidArgument, .resourceExhausted, .unavailable].contains(error.failure.code))
        #expect(!error.failure.reason.isEmpty && !error.failure.message.isEmpty)
    }

    @Test func `Random frames never trap, and what closed stays closed`() {
        var generator = SeededGenerator()
        print("ConnectionStateControlTests seed: \(generator.seed)")
        for _ in 0..<300 {
            var session = Session(hello: Bool.random(using: &generator) ? nil : WireHello(protocolVersion: 1))
            var running: Set<UInt32> = []
            for _ in 0..<200 {
                let type = [1, 1, 1, 2, 3, 3, 3, 0x10, 0x11, 0x12, 0x13, 0x13, 0x14, 0x14, 0x7F, 0x80 as UInt8]
                    .randomElement(using: &generator)
                let payload = (0..<Int.random(in: 0...9, using: &generator)).map { _ in
                    UInt8.random(in: 0...20, using: &generator)
                }
                let action = session.send(
                    type ?? 1, UInt32.random(in: 0...60, using: &generator), payload,
                    flags: UInt8.random(in: 0...5, using: &generator))
                if case .startRequest(let stream, _) = action { running.insert(stream) }
                if case .close = action { #expect(session.state.isClosed) }
                if let stream = running.randomElement(using: &generator), Bool.random(using: &generator) {
                    if session.state.maySendData(stream: stream) {
                        session.state.sentData(stream: stream, payloadByteCount: 40_000)
                    }
                    _ = session.state.consumed(stream: stream, payloadByteCount: 9)
                    _ = session.state.finished(stream: stream)
                    running.remove(stream)
                }
                #expect(session.state.streamsInFlight == running.count, "seed \(generator.seed)")
                if session.state.isClosed { #expect(session.request(999) == .none) }
            }
        }
    }
}
