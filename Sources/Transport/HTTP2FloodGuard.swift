import Base
import HTTP2
import Wire

/// Counts the frames that cost the client less than the server. Pure; it sees each frame before nghttp2 does.
struct HTTP2FloodGuard: Sendable {
    private enum FrameType {
        static let data: UInt8 = 0
        static let headers: UInt8 = 1
        static let settings: UInt8 = 4
        static let ping: UInt8 = 6
        static let windowUpdate: UInt8 = 8
        static let continuation: UInt8 = 9
    }
    private static let ack: UInt8 = 0x1
    private static let endStream: UInt8 = 0x1
    private static let padded: UInt8 = 0x8
    /// Padding, with the byte that tells its length (RFC 9113 §6.1).
    private static let paddingMax = 256
    private static let endHeaders: UInt8 = 0x4
    /// The WINDOW_UPDATEs that are not counted, for each request and for each frame of DATA that was sent. Clients send
    /// two for each DATA if they open both windows at once, and eight if they do so for every 4 KiB. Envoy allows its
    /// peers as many.
    private static let windowUpdatesPerRequest = 2
    private static let windowUpdatesPerData = 20

    private let headerFramesMax: Int
    private let headerBlockMax: Int
    private var idleRate: EventRate
    private var pingRate: EventRate
    /// Whether headers or data were sent since the last PING.
    private var hasSent = false
    /// The WINDOW_UPDATEs to come that are not counted.
    private var windowUpdatesLeft = 0
    /// The requests whose end may still come as a frame of DATA without content.
    private var unendedRequests = 0
    /// The stream of the newest request. Headers on it, or on an older one, are trailers, or come after its end.
    private var newestStream: UInt32 = 0
    /// The server has sent the GOAWAY after which nghttp2 ignores new requests. They count as frames of no use.
    var ignoresRequests = false
    private var blockFrames = 0
    /// The bytes of the frames of the block of headers that came last, as far as these frames have begun; 0 after a
    /// frame of another kind.
    private(set) var blockByteCount = 0
    /// A block of headers has begun and not ended.
    private(set) var isInBlock = false

    init(limits: Limits) {
        headerFramesMax = limits.headerFramesMax
        headerBlockMax = limits.headerBlockMax
        idleRate = EventRate(perSecondMax: limits.idleFramesPerSecondMax)
        pingRate = EventRate(perSecondMax: limits.pingsPerSecondMax)
    }

    /// The reason to end the connection for this frame; nil: go on.
    mutating func admit(_ frame: HTTP2FrameHeader, now: Instant) -> CloseReason? {
        if frame.type != FrameType.headers, frame.type != FrameType.continuation { blockByteCount = 0 }
        switch frame.type {
        case FrameType.headers:
            (blockFrames, blockByteCount) = (0, 0)
            if let reason = admitBlock(frame) { return reason }
            if beginsRequest(frame) || endsRequest(frame) { return nil }
        case FrameType.continuation:
            if let reason = admitBlock(frame) { return reason }
            if frame.payloadByteCount > 0 { return nil }
        // The answer to a PING of the server.
        case FrameType.ping where frame.flags & Self.ack != 0: break
        case FrameType.ping: return admitPing(at: now)
        case FrameType.data: if isOfUse(frame) { return nil }
        // nghttp2 ends a connection for an answer to SETTINGS that were not sent.
        case FrameType.settings where frame.flags & Self.ack != 0: return nil
        case FrameType.windowUpdate where windowUpdatesLeft > 0:
            windowUpdatesLeft -= 1
            return nil
        default: break
        }
        return idleRate.note(at: now) ? nil : .tooManyIdleFrames
    }

    mutating func sentHeaders() { hasSent = true }

    /// A frame of DATA with content was sent.
    mutating func sentData() {
        hasSent = true
        windowUpdatesLeft += Self.windowUpdatesPerData
    }

    /// Clients measure the path with a PING while they receive; grpc-go sends the next one as soon as the last one was
    /// answered. So a PING is not counted if the server has sent headers or data since the one before, as in the
    /// servers of grpc-go and of gRPC's C core.
    private mutating func admitPing(at now: Instant) -> CloseReason? {
        if hasSent {
            hasSent = false
            return nil
        }
        return pingRate.note(at: now) ? nil : .tooManyPings
    }

    /// Whether a frame of DATA has content or ends a request. A padded frame may be padding only.
    private mutating func isOfUse(_ frame: HTTP2FrameHeader) -> Bool {
        endsRequest(frame)
            || frame.payloadByteCount > (frame.flags & Self.padded != 0 ? Self.paddingMax : 0)
    }

    /// Whether a frame ends a request that has not ended yet, as far as their number tells.
    private mutating func endsRequest(_ frame: HTTP2FrameHeader) -> Bool {
        guard frame.flags & Self.endStream != 0, unendedRequests > 0 else { return false }
        unendedRequests -= 1
        return true
    }

    /// Whether the headers begin a request: a client numbers its streams upwards (RFC 9113 §5.1.1).
    private mutating func beginsRequest(_ headers: HTTP2FrameHeader) -> Bool {
        guard headers.stream > newestStream, !ignoresRequests else { return false }
        newestStream = headers.stream
        windowUpdatesLeft += Self.windowUpdatesPerRequest
        if headers.flags & Self.endStream == 0 { unendedRequests += 1 }
        return true
    }

    private mutating func admitBlock(_ frame: HTTP2FrameHeader) -> CloseReason? {
        blockFrames += 1
        blockByteCount += frame.payloadByteCount
        isInBlock = frame.flags & Self.endHeaders == 0
        let isWithin = blockFrames <= headerFramesMax && blockByteCount <= headerBlockMax
        return isWithin ? nil : .headersTooLarge
    }
}
