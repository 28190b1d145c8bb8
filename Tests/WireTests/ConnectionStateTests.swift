import Base
import Messages
import Testing
import Wire

@Suite struct ConnectionStateTests {
    @Test func `HELLO is answered with the server's limits`() {
        let session = Session()
        #expect(session.state.hello.protocolVersion == 1)
        #expect(session.state.hello.frameBytesMax == 4 * 1024 * 1024)
        #expect(session.state.hello.streamsMax == 256)
        #expect(session.state.hello.initialWindow == 256 * 1024)
        #expect(session.state.hello.software == "test")
    }

    @Test func `What the client said in HELLO counts from then on`() {
        let hello = WireHello(protocolVersion: 1, frameBytesMax: 20_000, software: "cli", authorization: "Bearer x")
        let session = Session(hello: hello)
        #expect(session.state.peer == hello)
        #expect(session.state.peerPayloadMax == 20_000)
        #expect(Session(hello: WireHello(protocolVersion: 9)).state.peerPayloadMax == 4 * 1024 * 1024)
        #expect(Session(hello: nil).state.peerPayloadMax == 4 * 1024 * 1024)
        #expect(
            Session(hello: WireHello(protocolVersion: 1, frameBytesMax: .max)).state.peerPayloadMax
                == FrameHeader.payloadByteCountMax)
    }

    @Test(arguments: [
        WireHello(), WireHello(protocolVersion: 1, frameBytesMax: 16_383),
        WireHello(protocolVersion: 1, initialWindow: 0x8000_0000),
    ])
    func `A HELLO that cannot be served ends the connection`(hello: WireHello) {
        var session = Session(hello: nil)
        #expect(session.send(0x10, 0, hello.encoded()) == .close(.malformedHello, farewell: nil))
    }

    @Test(arguments: [
        WireHello(protocolVersion: 1, frameBytesMax: 16_384),
        WireHello(protocolVersion: 1, initialWindow: 0x7FFF_FFFF),
    ])
    func `A HELLO at the edge of what can be served is welcome`(hello: WireHello) {
        var session = Session(hello: nil)
        #expect(session.send(0x10, 0, hello.encoded()) == .welcome)
    }

    /// A connection keeps them for as long as it lives.
    @Test func `The texts of a HELLO have 8 KiB together`() {
        for (byteCount, isWelcome) in [(8 * 1024, true), (8 * 1024 + 1, false)] {
            let authorization = Text(String(repeating: "x", count: byteCount - 3))
            let hello = WireHello(protocolVersion: 1, software: "cli", authorization: authorization)
            var session = Session(hello: nil)
            let action = session.send(0x10, 0, hello.encoded())
            #expect(action == (isWelcome ? .welcome : .close(.malformedHello, farewell: nil)))
        }
    }

    @Test func `A HELLO on a stream, with flags or malformed ends the connection`() {
        let hello = WireHello(protocolVersion: 1).encoded()
        for (stream, flags, payload) in [(1, 0, hello), (0, 1, hello), (0, 0, [0x08])] as [(UInt32, UInt8, [UInt8])] {
            var session = Session(hello: nil)
            #expect(session.send(0x10, stream, payload, flags: flags) == .close(.malformedHello, farewell: nil))
        }
    }

    @Test func `HELLO after a frame that was skipped is not first`() {
        var session = Session(hello: nil)
        #expect(session.send(0x7F, 0) == .none)
        #expect(session.send(0x10, 0, [8, 1]) == .close(.helloNotFirst, farewell: nil))
    }

    @Test func `Limits are small until the caller is known`() {
        var session = Session()
        #expect(session.state.payloadMax == 64 * 1024)
        #expect(session.state.streamsMax == 16)
        session.state.authenticated()
        #expect(session.state.payloadMax == 4 * 1024 * 1024)
        #expect(session.state.streamsMax == 256)
    }

    @Test(arguments: [false, true], [false, true])
    func `One stream above the limit is refused and safe to send again`(authenticated: Bool, stock: Bool) {
        var session = Session(hello: stock ? nil : WireHello(protocolVersion: 1), authenticated: authenticated)
        let limit: UInt32 = authenticated ? 256 : 16
        for index in 0..<limit {
            #expect(session.request(index * 2 + 1) == .startRequest(stream: index * 2 + 1, .unary))
        }
        let next = limit * 2 + 1
        #expect(
            session.request(next)
                == (stock
                    ? .respondFailure(stream: next, .tooManyStreams) : .reply(.cancel(stream: next, .refused))))
        // A refused id is used up, and a finished stream makes room for a new one.
        #expect(session.request(next) == .respondFailure(stream: next, .streamIDNotIncreasing))
        #expect(session.state.finished(stream: 1) == .none)
        #expect(session.request(next + 2) == .startRequest(stream: next + 2, .unary))
    }

    @Test func `A hundred thousand ids of which none finishes hold sixteen streams`() {
        var session = Session()
        for index in 0..<100_000 as Range<UInt32> { session.request(index * 2 + 1) }
        #expect(session.state.streamsInFlight == 16)
    }

    @Test func `Cancelled work counts until it has stopped`() {
        var session = Session()
        for index in 0..<16 as Range<UInt32> {
            session.request(index * 2 + 1)
            #expect(session.cancel(index * 2 + 1) == .cancel(stream: index * 2 + 1, .cancelled))
            #expect(!session.state.wantsAnswer(stream: index * 2 + 1))
        }
        #expect(session.request(33) == .reply(.cancel(stream: 33, .refused)))
        #expect(session.state.finished(stream: 15) == .none)
        #expect(session.request(35) == .startRequest(stream: 35, .unary))
    }

    @Test func `Sending and cancelling as fast as possible ends the connection`() {
        var limits = Limits()
        limits.cancelsPerSecondMax = 3
        var session = Session(limits: limits)
        func cancelled(_ stream: UInt32) -> ConnectionAction {
            session.request(stream)
            let action = session.cancel(stream)
            if !session.state.isClosed { _ = session.state.finished(stream: stream) }
            return action
        }
        for stream in [1, 3, 5] as [UInt32] { #expect(cancelled(stream) == .cancel(stream: stream, .cancelled)) }
        session.now = session.now.advanced(by: .seconds(1))
        for stream in [7, 9, 11] as [UInt32] { #expect(cancelled(stream) == .cancel(stream: stream, .cancelled)) }
        #expect(cancelled(13) == .close(.tooManyCancels, farewell: .goAway(lastStream: 13, .tooManyCancels)))
    }

    @Test func `Streams that the client makes fail count like cancelled ones`() {
        var limits = Limits()
        limits.cancelsPerSecondMax = 1
        var session = Session(limits: limits)
        session.request(1)
        session.request(3)
        #expect(session.send(3, 1, [1]) == .failStream(stream: 1, .dataNotExpected))
        #expect(session.send(3, 3, [1]) == .close(.tooManyCancels, farewell: .goAway(lastStream: 3, .tooManyCancels)))
    }

    @Test func `Cancelling what is not in flight is ignored and costs nothing`() {
        var limits = Limits()
        limits.cancelsPerSecondMax = 0
        var session = Session(limits: limits)
        session.request(1)
        _ = session.state.finished(stream: 1)
        for stream in [1, 2, 3, 0xFFFF_FFFF] as [UInt32] { #expect(session.cancel(stream) == .none) }
    }

    @Test func `A code this version does not know cancels all the same`() {
        var session = Session()
        session.request(1)
        #expect(session.send(0x13, 1, field(1, 99)) == .cancel(stream: 1, .cancelled))
        session.request(3)
        #expect(session.send(0x13, 3) == .cancel(stream: 3, .cancelled))
    }

    @Test func `Stream ids at the edges of 32 bits do not trap`() {
        for stream in [0, 2, 0x7FFF_FFFE, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFE, 0xFFFF_FFFF] as [UInt32] {
            var session = Session()
            #expect(session.request(stream) == .respondFailure(stream: stream, .invalidStreamID))
            #expect(session.send(3, stream) == .respondFailure(stream: stream, .invalidStreamID))
            #expect(session.request(1) == .startRequest(stream: 1, .unary))
        }
        var session = Session()
        #expect(session.request(0x7FFF_FFFF) == .startRequest(stream: 0x7FFF_FFFF, .unary))
        #expect(session.request(1) == .respondFailure(stream: 1, .streamIDNotIncreasing))
        _ = session.state.finished(stream: 0x7FFF_FFFF)
        #expect(session.request(0x7FFF_FFFF) == .respondFailure(stream: 0x7FFF_FFFF, .streamIDNotIncreasing))
    }

    @Test func `An oversized request uses its id up`() {
        var session = Session()
        let header = FrameHeader(payloadByteCount: 70_000, stream: 5, type: .request, flags: .remoteOpen)
        #expect(session.state.receivedOversized(header, now: session.now) == .respondFailure(stream: 5, .frameTooLarge))
        #expect(session.send(3, 5, [1]) == .none)
        #expect(session.request(5) == .respondFailure(stream: 5, .streamIDNotIncreasing))
        session.request(7)
        let again = FrameHeader(payloadByteCount: 70_000, stream: 7, type: .request)
        #expect(
            session.state.receivedOversized(again, now: session.now)
                == .close(.streamInUse, farewell: .goAway(lastStream: 7, .streamInUse)))
    }

    @Test func `An oversized first frame decides what the client speaks`() {
        var session = Session(hello: nil)
        let hello = FrameHeader(payloadByteCount: 70_000, stream: 0, type: .hello)
        #expect(
            session.state.receivedOversized(hello, now: session.now) == .close(.controlFrameTooLarge, farewell: nil))
        session = Session(hello: nil)
        let request = FrameHeader(payloadByteCount: 70_000, stream: 1, type: .request)
        #expect(
            session.state.receivedOversized(request, now: session.now) == .respondFailure(stream: 1, .frameTooLarge))
        #expect(session.send(0x10, 0, [8, 1]) == .close(.helloNotFirst, farewell: nil))
    }

    @Test func `Late frames of a cancelled stream are dropped`() {
        var session = Session()
        session.request(1, flags: 2)
        session.cancel(1)
        #expect(session.send(3, 1, [1]) == .none)
        #expect(session.window(1, 5) == .none)
        #expect(session.cancel(1) == .none)
        #expect(!session.state.maySendData(stream: 1))
        #expect(session.state.finished(stream: 1) == .none)
        #expect(session.send(3, 1, [1]) == .none)
    }

    @Test func `A stream whose deadline passed is over for the client, and counts`() {
        var session = Session()
        session.request(1, flags: 2)
        session.state.abandoned(stream: 1)
        #expect(!session.state.wantsAnswer(stream: 1))
        #expect(session.send(3, 1, [1]) == .none)
        #expect(session.state.streamsInFlight == 1)
    }

    @Test func `The client's messages are read until it closes its side`() {
        var session = Session()
        session.request(1, flags: 2)
        #expect(session.send(3, 1, [1]) == .data(stream: 1, last: false))
        #expect(session.send(3, 1, [], flags: 5) == .remoteClosed(stream: 1))
        #expect(session.send(3, 1, [1]) == .failStream(stream: 1, .dataNotExpected))
        session.request(3, flags: 2)
        #expect(session.send(3, 3, [], flags: 1) == .remoteClosed(stream: 3))
        session.request(5, flags: 2)
        #expect(session.send(3, 5, [1], flags: 2) == .failStream(stream: 5, .invalidFlags))
    }
}
