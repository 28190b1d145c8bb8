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
    private static let endHeaders: UInt8 = 0x4

    private let headerFramesMax: Int
    private let headerBlockMax: Int
    private var idleRate: EventRate
    private var pingRate: EventRate
    private var blockFrames = 0
    private var blockByteCount = 0
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
        switch frame.type {
        case FrameType.headers:
            (blockFrames, blockByteCount) = (0, 0)
            return admitBlock(frame)
        case FrameType.continuation: return admitBlock(frame)
        case FrameType.ping: return pingRate.note(at: now) ? nil : .tooManyPings
        case FrameType.data where frame.payloadByteCount > 0 || frame.flags & Self.endStream != 0: return nil
        case FrameType.settings where frame.flags & Self.ack != 0: return nil
        // A client that reads much sends WINDOW_UPDATE often.
        case FrameType.windowUpdate: return nil
        default: return idleRate.note(at: now) ? nil : .tooManyIdleFrames
        }
    }

    private mutating func admitBlock(_ frame: HTTP2FrameHeader) -> CloseReason? {
        blockFrames += 1
        blockByteCount += frame.payloadByteCount
        isInBlock = frame.flags & Self.endHeaders == 0
        let isWithin = blockFrames <= headerFramesMax && blockByteCount <= headerBlockMax
        return isWithin ? nil : .headersTooLarge
    }
}
