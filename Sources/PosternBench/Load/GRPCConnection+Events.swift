import Base
import HTTP2
import Wire

// The events that HTTP/2 finds in the server's bytes.
extension GRPCConnection: HTTP2Events {
    private static let sparesMax = 512

    func headersBegan(stream: UInt32, isFirst: Bool) { headersOf = calls[stream] }

    func header(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
        headersOf?.received(name, value)
        return true
    }

    func headersEnded(stream: UInt32, isLast: Bool) {}

    func data(_ bytes: UnsafeRawBufferPointer, stream: UInt32) {
        calls[stream]?.received(bytes)
        consumedByteCount += bytes.count
    }

    func closed(stream: UInt32) {
        guard let call = calls.removeValue(forKey: stream) else { return }
        call.appendResponse(to: &input)
        if spares.count < Self.sparesMax { spares.append(call) }
    }

    func peerLeft() {
        FrameHeader(payloadByteCount: 0, stream: 0, type: .goAway).append(to: &input)
    }

    func nextBytes(stream: UInt32, into buffer: UnsafeMutableRawBufferPointer) -> HTTP2Body {
        guard let call = calls[stream] else { return .last(0) }
        let (count, isLast) = call.nextBytes(into: buffer)
        return isLast ? .last(count) : .bytes(count)
    }

    func remoteEnded(stream: UInt32) {}
    func reset(stream: UInt32) {}
    func windowOpened(stream: UInt32) {}
    func pingAcknowledged(_ opaque: UInt64) {}
    func violated() {}
    func refused() {}
    func addTrailers(stream: UInt32, to fields: HTTP2Fields) {}
}
