import Base
import Messages
import Wire

/// A connection that is fed frames as bytes, as a decoder would cut them.
struct Session {
    var state: ConnectionState
    var now = Instant(nanoseconds: 1_000_000_000)

    init(limits: Limits = Limits(), hello: WireHello? = WireHello(protocolVersion: 1), authenticated: Bool = false) {
        state = ConnectionState(limits: SharedLimits(limits), software: "test")
        if let hello {
            let action = send(0x10, 0, hello.encoded())
            precondition(action == .welcome)
        }
        if authenticated { state.authenticated() }
    }

    @discardableResult
    mutating func send(_ type: UInt8, _ stream: UInt32, _ payload: [UInt8] = [], flags: UInt8 = 0) -> ConnectionAction {
        let header = FrameHeader(
            payloadByteCount: UInt32(payload.count), stream: stream, type: FrameType(rawValue: type),
            flags: FrameFlags(rawValue: flags))
        let now = now
        return payload.withUnsafeBytes { state.received(header, payload: $0, now: now) }
    }

    @discardableResult
    mutating func request(_ stream: UInt32, flags: UInt8 = 0) -> ConnectionAction { send(1, stream, flags: flags) }

    @discardableResult
    mutating func cancel(_ stream: UInt32) -> ConnectionAction {
        send(0x13, stream, WireCancel(code: .cancelled).encoded())
    }

    @discardableResult
    mutating func window(_ stream: UInt32, _ credit: UInt32) -> ConnectionAction {
        send(0x14, stream, WireWindow(credit: credit).encoded())
    }
}
