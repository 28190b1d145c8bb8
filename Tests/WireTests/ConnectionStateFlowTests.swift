import Base
import Messages
import Testing
import Wire

@Suite struct ConnectionStateFlowTests {
    @Test func `The client may go below its credit with one message, not further`() {
        var limits = Limits()
        limits.streamWindow = 64 * 1024
        var session = Session(limits: limits)
        session.request(1, flags: 2)
        let message = [UInt8](repeating: 0, count: 65_525)  // with its header one byte less than the window
        #expect(session.send(3, 1, message) == .data(stream: 1, last: false))
        #expect(session.send(3, 1, message) == .data(stream: 1, last: false))
        #expect(session.send(3, 1, []) == .failStream(stream: 1, .windowExceeded))
    }

    @Test func `A stock client is held to the window as well, but hears nothing of it`() {
        var limits = Limits()
        limits.streamWindow = 64 * 1024
        var session = Session(limits: limits, hello: nil)
        session.request(1, flags: 2)
        let message = [UInt8](repeating: 0, count: 65_526)
        #expect(session.send(3, 1, message) == .data(stream: 1, last: false))
        #expect(session.state.consumed(stream: 1, payloadByteCount: 65_526) == .none)
        #expect(session.send(3, 1, message) == .data(stream: 1, last: false))
        #expect(session.send(3, 1, message) == .failStream(stream: 1, .windowExceeded))
    }

    @Test func `Empty messages are not free`() {
        var limits = Limits()
        limits.streamWindow = 64 * 1024
        var session = Session(limits: limits)
        session.request(1, flags: 2)
        var count = 0
        while session.send(3, 1) == .data(stream: 1, last: false) { count += 1 }
        #expect(count == 6554)
    }

    @Test func `Credit is given back when half of the window was taken`() {
        var limits = Limits()
        limits.streamWindow = 100_000
        var session = Session(limits: limits)
        session.request(1, flags: 2)
        for _ in 0..<2 { session.send(3, 1, [UInt8](repeating: 0, count: 24_990)) }
        #expect(session.state.consumed(stream: 1, payloadByteCount: 24_990) == .none)
        #expect(
            session.state.consumed(stream: 1, payloadByteCount: 24_990) == .reply(.window(stream: 1, credit: 50_000)))
        session.send(3, 1, [], flags: 1)
        #expect(session.state.consumed(stream: 1, payloadByteCount: 60_000) == .none)
        #expect(session.state.consumed(stream: 99, payloadByteCount: 60_000) == .none)
    }

    @Test func `The server sends while it has credit, and waits for WINDOW`() {
        var session = Session(hello: WireHello(protocolVersion: 1, initialWindow: 100))
        session.request(1, flags: 1)
        #expect(session.state.maySendData(stream: 1))
        session.state.sentData(stream: 1, payloadByteCount: 200)
        #expect(!session.state.maySendData(stream: 1))
        #expect(session.window(1, 110) == .none)
        #expect(!session.state.maySendData(stream: 1))
        #expect(session.window(1, 1) == .sendWindowOpened(stream: 1))
        #expect(session.state.maySendData(stream: 1))
        #expect(session.window(1, 1) == .none)
    }

    @Test func `Without a window in HELLO the default counts`() {
        var session = Session()
        session.request(1, flags: 1)
        session.state.sentData(stream: 1, payloadByteCount: 64 * 1024 - 11)
        #expect(session.state.maySendData(stream: 1))
        session.state.sentData(stream: 1, payloadByteCount: 0)
        #expect(!session.state.maySendData(stream: 1))
    }

    @Test func `A stock client gets DATA without limit, a unary stream none`() {
        var session = Session(hello: nil)
        session.request(1, flags: 1)
        session.request(3)
        for _ in 0..<100 { session.state.sentData(stream: 1, payloadByteCount: 4 * 1024 * 1024) }
        #expect(session.state.maySendData(stream: 1))
        #expect(!session.state.maySendData(stream: 3))
        #expect(!session.state.maySendData(stream: 5))
    }

    @Test func `A window reaches 2^31 - 1 and not further`() {
        var session = Session(hello: WireHello(protocolVersion: 1, initialWindow: 1))
        session.request(1, flags: 1)
        #expect(session.window(1, 0x7FFF_FFFE) == .none)
        #expect(session.window(1, 1) == .close(.windowOverflow, farewell: .goAway(lastStream: 1, .windowOverflow)))
    }
}
