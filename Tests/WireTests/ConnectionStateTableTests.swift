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
                var state = ConnectionState(limits: SharedLimits(limits), software: "test")
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
}
