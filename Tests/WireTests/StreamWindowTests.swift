import Testing

@testable import Wire

@Suite struct StreamWindowTests {
    @Test func `A frame costs its bytes on the wire`() {
        var window = StreamWindow(send: 100, receive: 100)
        window.sent(20)
        #expect(window.sendCredit == 70)
    }

    @Test func `One message may overdraw a window, in either direction`() {
        var window = StreamWindow(send: 1, receive: 1)
        window.sent(5_000_000)
        #expect(window.sendCredit < 0)
        #expect(window.received(5_000_000) == true)
        let another = window.received(0)
        #expect(!another)
    }

    @Test func `Credit is given back in halves of the window`() {
        var window = StreamWindow(send: 0, receive: 100)
        #expect(window.received(39) == true)
        #expect(window.took(39, window: 100) == nil)
        #expect(window.received(0) == true)
        #expect(window.took(0, window: 100) == 59)
        #expect(window.received(0) == true)
        #expect(window.took(0, window: 100) == nil)
    }

    @Test func `Granting says when sending may go on`() {
        var window = StreamWindow(send: 0, receive: 0)
        #expect(window.granted(0) == .unchanged)
        #expect(window.granted(10) == .opened)
        #expect(window.granted(10) == .unchanged)
        #expect(window.granted(-30) == .unchanged)
        #expect(window.granted(10) == .unchanged)
        #expect(window.granted(1) == .opened)
        #expect(window.granted(StreamWindow.creditMax) == .overflow)
        #expect(window.granted(StreamWindow.creditMax - 1) == .unchanged)
        #expect(window.granted(.max) == .overflow)
    }
}
