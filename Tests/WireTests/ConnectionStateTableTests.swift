// Every state of the server's side against every event: the whole protocol on one page.

import Base
import Messages
import Testing

@testable import Wire

@Suite struct ConnectionStateTableTests {
    static let limits = Limits()

    /// Ways to get into each state. Stream 5 is in flight where the name says how; 3 is finished, 7 was never used.
    static let states: [(String, @Sendable (inout ConnectionState) -> Void)] = [
        ("new", { _ in }),
        ("stock", { open(&$0, stock: true) }),
        ("stock unary", { open(&$0, stock: true, 0) }),
        (
            "stock stopping",
            {
                open(&$0, stock: true, 0); _ = $0.finishDrain()
            }
        ),
        ("ext", { open(&$0) }),
        ("ext unary", { open(&$0, 0) }),
        ("ext open", { open(&$0, 2) }),
        ("ext half", { open(&$0, 1) }),
        (
            "ext cancelled",
            {
                open(&$0, 2); _ = send(&$0, 0x13, 5, code: 1)
            }
        ),
        (
            "ext announced",
            {
                open(&$0, 0); _ = $0.beginDrain()
            }
        ),
        (
            "ext stopping",
            {
                open(&$0, 0); _ = $0.beginDrain(); _ = $0.finishDrain()
            }
        ),
        (
            "closed",
            {
                open(&$0, 0); _ = $0.violated(.idleTimeout)
            }
        ),
    ]

    static let events: [(String, @Sendable (inout ConnectionState) -> ConnectionAction)] = [
        ("HELLO", { send(&$0, 0x10, 0, hello) }),
        ("REQUEST 7", { send(&$0, 1, 7) }),
        ("REQUEST 7 closed", { send(&$0, 1, 7, flags: 1) }),
        ("REQUEST 7 open", { send(&$0, 1, 7, flags: 2) }),
        ("REQUEST 7 both flags", { send(&$0, 1, 7, flags: 3) }),
        ("REQUEST 5", { send(&$0, 1, 5) }),
        ("REQUEST 3", { send(&$0, 1, 3) }),
        ("REQUEST 8", { send(&$0, 1, 8) }),
        ("REQUEST 7 oversized", { $0.receivedOversized(header(1, 7), now: now) }),
        ("RESPONSE 5", { send(&$0, 2, 5) }),
        ("DATA 5", { send(&$0, 3, 5, [1]) }),
        ("DATA 5 empty", { send(&$0, 3, 5) }),
        ("DATA 5 last", { send(&$0, 3, 5, [1], flags: 1) }),
        ("DATA 5 end", { send(&$0, 3, 5, flags: 5) }),
        ("DATA 5 no data", { send(&$0, 3, 5, flags: 4) }),
        ("DATA 5 no data with data", { send(&$0, 3, 5, [1], flags: 4) }),
        ("DATA 5 oversized", { $0.receivedOversized(header(3, 5), now: now) }),
        ("DATA 3", { send(&$0, 3, 3, [1]) }),
        ("DATA 7", { send(&$0, 3, 7, [1]) }),
        ("DATA 4", { send(&$0, 3, 4, [1]) }),
        ("PING", { send(&$0, 0x11, 0, [0, 0, 0, 0, 0, 0, 0, 9]) }),
        ("PING ack", { send(&$0, 0x11, 0, [0, 0, 0, 0, 0, 0, 0, 9], flags: 1) }),
        ("PING short", { send(&$0, 0x11, 0, [9]) }),
        ("PING oversized", { $0.receivedOversized(header(0x11, 0), now: now) }),
        ("GOAWAY", { send(&$0, 0x12, 0, code: 4, field: 2) }),
        ("CANCEL 5", { send(&$0, 0x13, 5, code: 1) }),
        ("CANCEL 7", { send(&$0, 0x13, 7, code: 1) }),
        ("CANCEL 0", { send(&$0, 0x13, 0, code: 1) }),
        ("WINDOW 5", { send(&$0, 0x14, 5, code: 9) }),
        ("WINDOW 5 too much", { send(&$0, 0x14, 5, code: 0x7FFF_FFFF) }),
        ("WINDOW 5 none", { send(&$0, 0x14, 5) }),
        ("unknown 0x7F", { send(&$0, 0x7F, 5) }),
        ("unknown 0x80", { send(&$0, 0x80, 5) }),
        ("unknown oversized", { $0.receivedOversized(header(0x7F, 7), now: now) }),
        ("beginDrain", { $0.beginDrain() }),
        ("finishDrain", { $0.finishDrain() }),
        ("finished 5", { $0.streams.index(of: 5) == nil ? .none : $0.finished(stream: 5) }),
        ("ping", { state in state.ping(3).map { .reply($0) } ?? .none }),
    ]

    static let now = Instant(nanoseconds: 0)
    static let hello: [UInt8] = [8, 1]

    static func header(_ type: UInt8, _ stream: UInt32) -> FrameHeader {
        FrameHeader(payloadByteCount: 70_000, stream: stream, type: FrameType(rawValue: type))
    }

    static func send(
        _ state: inout ConnectionState, _ type: UInt8, _ stream: UInt32, _ payload: [UInt8] = [], flags: UInt8 = 0
    ) -> ConnectionAction {
        let header = FrameHeader(
            payloadByteCount: UInt32(payload.count), stream: stream, type: FrameType(rawValue: type),
            flags: FrameFlags(rawValue: flags))
        return payload.withUnsafeBytes { state.received(header, payload: $0, now: now) }
    }

    static func send(
        _ state: inout ConnectionState, _ type: UInt8, _ stream: UInt32, code: UInt64, field number: UInt64 = 1
    ) -> ConnectionAction {
        send(&state, type, stream, field(number, code))
    }

    static func open(_ state: inout ConnectionState, stock: Bool = false, _ flags: UInt8? = nil) {
        if !stock { _ = send(&state, 0x10, 0, hello) }
        _ = send(&state, 1, 3)
        _ = state.finished(stream: 3)
        if let flags { _ = send(&state, 1, 5, flags: flags) }
    }

    static func describe(_ action: ConnectionAction) -> String {
        switch action {
        case .none: "-"
        case .welcome: "welcome"
        case .startRequest(let stream, let kind): "start \(stream) \(kind)"
        case .data(let stream, let last): "data \(stream)\(last ? " last" : "")"
        case .remoteClosed(let stream): "remoteClosed \(stream)"
        case .cancel(let stream, let code): "cancel \(stream) \(code)"
        case .respondFailure(let stream, let error): "respond \(stream) \(error)"
        case .failStream(let stream, let error): "fail \(stream) \(error)"
        case .sendWindowOpened(let stream): "windowOpened \(stream)"
        case .reply(let frame): "reply \(describe(frame))"
        case .pong(let opaque): "pong \(opaque)"
        case .pingAcknowledged(let opaque): "acknowledged \(opaque)"
        case .close(let reason, let farewell): "close \(reason)\(farewell.map { ", \(describe($0))" } ?? "")"
        }
    }

    static func describe(_ frame: ControlFrame) -> String {
        switch frame {
        case .ping(let opaque, let ack): "PING \(opaque)\(ack ? " ack" : "")"
        case .goAway(let lastStream, let reason): "GOAWAY \(lastStream) \(reason.code)"
        case .cancel(let stream, let code): "CANCEL \(stream) \(code)"
        case .window(let stream, let credit): "WINDOW \(stream) \(credit)"
        }
    }

    static func table() -> String {
        var lines: [String] = []
        for (event, perform) in events {
            // States with the same outcome share a line.
            var outcomes: [(action: String, states: [String])] = []
            for (name, enter) in states {
                var state = ConnectionState(limits: limits, software: "test")
                enter(&state)
                let action = describe(perform(&state))
                if let index = outcomes.firstIndex(where: { $0.action == action }) {
                    outcomes[index].states.append(name)
                } else {
                    outcomes.append((action, [name]))
                }
            }
            lines.append(event)
            for outcome in outcomes { lines.append("  \(outcome.action): \(outcome.states.joined(separator: ", "))") }
        }
        return lines.joined(separator: "\n")
    }

    @Test func `Every state answers every event as the table says`() {
        // Where a line was broken does not matter.
        let isSame =
            Self.table().split(whereSeparator: \.isWhitespace) == Self.expected.split(whereSeparator: \.isWhitespace)
        #expect(isSame, "\(Self.table())")
    }

    static let expected = """
        HELLO
          welcome: new
          close helloNotFirst: stock, stock unary, stock stopping
          close helloNotFirst, GOAWAY 3 protocolError: ext
          close helloNotFirst, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled, ext announced,
            ext stopping
          -: closed
        REQUEST 7
          start 7 unary: new, stock, stock unary, ext, ext unary, ext open, ext half, ext cancelled, ext announced
          respond 7 shuttingDown: stock stopping
          reply CANCEL 7 refused: ext stopping
          -: closed
        REQUEST 7 closed
          start 7 remoteClosed: new, stock, stock unary, ext, ext unary, ext open, ext half, ext cancelled,
            ext announced
          respond 7 shuttingDown: stock stopping
          reply CANCEL 7 refused: ext stopping
          -: closed
        REQUEST 7 open
          start 7 remoteOpen: new, stock, stock unary, ext, ext unary, ext open, ext half, ext cancelled,
            ext announced
          respond 7 shuttingDown: stock stopping
          reply CANCEL 7 refused: ext stopping
          -: closed
        REQUEST 7 both flags
          respond 7 invalidFlags: new, stock, stock unary, ext, ext unary, ext open, ext half, ext cancelled,
            ext announced
          respond 7 shuttingDown: stock stopping
          reply CANCEL 7 refused: ext stopping
          -: closed
        REQUEST 5
          start 5 unary: new, stock, ext
          close streamInUse: stock unary, stock stopping
          close streamInUse, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled, ext announced,
            ext stopping
          -: closed
        REQUEST 3
          start 3 unary: new
          respond 3 streamIDNotIncreasing: stock, stock unary, stock stopping, ext, ext unary, ext open, ext half,
            ext cancelled, ext announced, ext stopping
          -: closed
        REQUEST 8
          respond 8 invalidStreamID: new, stock, stock unary, stock stopping, ext, ext unary, ext open, ext half,
            ext cancelled, ext announced, ext stopping
          -: closed
        REQUEST 7 oversized
          respond 7 frameTooLarge: new, stock, stock unary, ext, ext unary, ext open, ext half, ext cancelled,
            ext announced
          respond 7 shuttingDown: stock stopping
          reply CANCEL 7 refused: ext stopping
          -: closed
        RESPONSE 5
          close frameForOtherSide: new, stock, stock unary, stock stopping
          close frameForOtherSide, GOAWAY 3 protocolError: ext
          close frameForOtherSide, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping
          -: closed
        DATA 5
          respond 5 unknownStream: new, stock, ext
          fail 5 dataNotExpected: stock unary, stock stopping, ext unary, ext half, ext announced, ext stopping
          data 5: ext open
          -: ext cancelled, closed
        DATA 5 empty
          respond 5 unknownStream: new, stock, ext
          fail 5 dataNotExpected: stock unary, stock stopping, ext unary, ext half, ext announced, ext stopping
          data 5: ext open
          -: ext cancelled, closed
        DATA 5 last
          respond 5 unknownStream: new, stock, ext
          fail 5 dataNotExpected: stock unary, stock stopping, ext unary, ext half, ext announced, ext stopping
          data 5 last: ext open
          -: ext cancelled, closed
        DATA 5 end
          respond 5 unknownStream: new, stock, ext
          fail 5 dataNotExpected: stock unary, stock stopping, ext unary, ext half, ext announced, ext stopping
          remoteClosed 5: ext open
          -: ext cancelled, closed
        DATA 5 no data
          respond 5 unknownStream: new, stock, ext
          fail 5 dataNotExpected: stock unary, stock stopping, ext unary, ext half, ext announced, ext stopping
          -: ext open, ext cancelled, closed
        DATA 5 no data with data
          respond 5 unknownStream: new, stock, ext
          fail 5 dataNotExpected: stock unary, stock stopping, ext unary, ext half, ext announced, ext stopping
          fail 5 invalidFlags: ext open
          -: ext cancelled, closed
        DATA 5 oversized
          respond 5 unknownStream: new, stock, ext
          fail 5 frameTooLarge: stock unary, stock stopping, ext unary, ext open, ext half, ext announced,
            ext stopping
          -: ext cancelled, closed
        DATA 3
          respond 3 unknownStream: new
          -: stock, stock unary, stock stopping, ext, ext unary, ext open, ext half, ext cancelled, ext announced,
            ext stopping, closed
        DATA 7
          respond 7 unknownStream: new, stock, stock unary, stock stopping, ext, ext unary, ext open, ext half,
            ext cancelled, ext announced, ext stopping
          -: closed
        DATA 4
          respond 4 invalidStreamID: new, stock, stock unary, stock stopping, ext, ext unary, ext open, ext half,
            ext cancelled, ext announced, ext stopping
          -: closed
        PING
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          pong 9: ext, ext unary, ext open, ext half, ext cancelled, ext announced, ext stopping
          -: closed
        PING ack
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          -: ext, ext unary, ext open, ext half, ext cancelled, ext announced, ext stopping, closed
        PING short
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          close malformedControlFrame, GOAWAY 3 protocolError: ext
          close malformedControlFrame, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping
          -: closed
        PING oversized
          close controlFrameTooLarge: new, stock, stock unary, stock stopping
          close controlFrameTooLarge, GOAWAY 3 limitExceeded: ext
          close controlFrameTooLarge, GOAWAY 5 limitExceeded: ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping
          -: closed
        GOAWAY
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          close peerLeft: ext
          -: ext unary, ext open, ext half, ext cancelled, ext announced, ext stopping, closed
        CANCEL 5
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          -: ext, ext cancelled, closed
          cancel 5 cancelled: ext unary, ext open, ext half, ext announced, ext stopping
        CANCEL 7
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          -: ext, ext unary, ext open, ext half, ext cancelled, ext announced, ext stopping, closed
        CANCEL 0
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          close malformedControlFrame, GOAWAY 3 protocolError: ext
          close malformedControlFrame, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping
          -: closed
        WINDOW 5
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          -: ext, ext unary, ext open, ext half, ext cancelled, ext announced, ext stopping, closed
        WINDOW 5 too much
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          -: ext, ext unary, ext cancelled, ext announced, ext stopping, closed
          close windowOverflow, GOAWAY 5 protocolError: ext open, ext half
        WINDOW 5 none
          close extensionWithoutHello: new, stock, stock unary, stock stopping
          close malformedControlFrame, GOAWAY 3 protocolError: ext
          close malformedControlFrame, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping
          -: closed
        unknown 0x7F
          -: new, stock, stock unary, stock stopping, ext, ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping, closed
        unknown 0x80
          close unknownCriticalFrame: new, stock, stock unary, stock stopping
          close unknownCriticalFrame, GOAWAY 3 protocolError: ext
          close unknownCriticalFrame, GOAWAY 5 protocolError: ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping
          -: closed
        unknown oversized
          -: new, stock, stock unary, stock stopping, ext, ext unary, ext open, ext half, ext cancelled,
            ext announced, ext stopping, closed
        beginDrain
          -: new, stock, stock unary, stock stopping, ext announced, ext stopping, closed
          reply GOAWAY 2147483647 shutdown: ext, ext unary, ext open, ext half, ext cancelled
        finishDrain
          close shutdown: new, stock
          -: stock unary, stock stopping, ext stopping, closed
          close shutdown, GOAWAY 3 shutdown: ext
          reply GOAWAY 5 shutdown: ext unary, ext open, ext half, ext cancelled, ext announced
        finished 5
          -: new, stock, stock unary, ext, ext unary, ext open, ext half, ext cancelled, ext announced, closed
          close shutdown: stock stopping, ext stopping
        ping
          -: new, stock, stock unary, stock stopping, closed
          reply PING 3: ext, ext unary, ext open, ext half, ext cancelled, ext announced, ext stopping
        """
}
