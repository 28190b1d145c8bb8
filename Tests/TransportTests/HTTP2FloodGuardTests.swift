import Base
import HTTP2
import Testing
import Wire

@testable import Transport

@Suite struct HTTP2FloodGuardTests {
    private static let now = Instant(nanoseconds: 1_000_000_000_000)

    private func admitted(_ count: Int, _ frame: HTTP2FrameHeader) -> (all: Bool, oneMore: CloseReason?) {
        var flood = HTTP2FloodGuard(limits: Limits())
        let all = (0..<count).allSatisfy { _ in flood.admit(frame, now: Self.now) == nil }
        return (all, flood.admit(frame, now: Self.now))
    }

    @Test func `Frames that carry nothing pass up to their rate`() {
        let limits = Limits()
        for (type, flags): (UInt8, UInt8) in [(2, 0), (3, 0), (4, 0), (7, 0), (0, 0), (0xFA, 0)] {
            let (all, oneMore) = admitted(
                limits.idleFramesPerSecondMax, HTTP2FrameHeader(payloadByteCount: 0, type: type, flags: flags))
            #expect(all && oneMore == .tooManyIdleFrames, "type \(type)")
        }
        let ping = admitted(limits.pingsPerSecondMax, HTTP2FrameHeader(payloadByteCount: 8, type: 6))
        #expect(ping.all && ping.oneMore == .tooManyPings)
    }

    @Test func `Frames that a working client sends often pass`() {
        for frame in [
            HTTP2FrameHeader(payloadByteCount: 1, type: 0), HTTP2FrameHeader(payloadByteCount: 0, type: 0, flags: 1),
            HTTP2FrameHeader(payloadByteCount: 4, type: 8), HTTP2FrameHeader(payloadByteCount: 0, type: 4, flags: 1),
            HTTP2FrameHeader(payloadByteCount: 100, type: 1, flags: 4),
        ] {
            let (all, oneMore) = admitted(100_000, frame)
            #expect(all && oneMore == nil, "type \(frame.type)")
        }
    }

    /// Type 6 is PING: a client that receives much sends one after each answer, to measure the path.
    @Test func `PINGs between answers are not counted, and answers to PINGs not as PINGs`() {
        let limits = Limits()
        var flood = HTTP2FloodGuard(limits: limits)
        let ping = HTTP2FrameHeader(payloadByteCount: 8, type: 6)
        for _ in 0..<10 * limits.pingsPerSecondMax {
            flood.sent()
            #expect(flood.admit(ping, now: Self.now) == nil)
        }
        for _ in 0..<limits.pingsPerSecondMax { #expect(flood.admit(ping, now: Self.now) == nil) }
        #expect(flood.admit(ping, now: Self.now) == .tooManyPings)
        let answer = HTTP2FrameHeader(payloadByteCount: 8, type: 6, flags: 1)
        let (all, oneMore) = admitted(limits.idleFramesPerSecondMax, answer)
        #expect(all && oneMore == .tooManyIdleFrames)
    }

    /// Flag 8 is PADDED: up to 256 bytes may be padding.
    @Test func `A padded frame that may be padding only carries nothing`() {
        let most = Limits().idleFramesPerSecondMax
        let (all, oneMore) = admitted(most, HTTP2FrameHeader(payloadByteCount: 256, type: 0, flags: 8))
        #expect(all && oneMore == .tooManyIdleFrames)
        #expect(admitted(most, HTTP2FrameHeader(payloadByteCount: 257, type: 0, flags: 8)).oneMore == nil)
        #expect(admitted(most, HTTP2FrameHeader(payloadByteCount: 1, type: 0, flags: 9)).oneMore == nil)
    }

    @Test func `A block of headers has so many frames and bytes`() {
        let limits = Limits()
        let (first, more) = (
            HTTP2FrameHeader(payloadByteCount: 1, type: 1), HTTP2FrameHeader(payloadByteCount: 1, type: 9)
        )
        var flood = HTTP2FloodGuard(limits: limits)
        for _ in 0..<2 {
            #expect(flood.admit(first, now: Self.now) == nil && flood.isInBlock)
            for _ in 1..<limits.headerFramesMax { #expect(flood.admit(more, now: Self.now) == nil) }
        }
        #expect(flood.admit(more, now: Self.now) == .headersTooLarge)
        var large = HTTP2FloodGuard(limits: limits)
        let whole = HTTP2FrameHeader(payloadByteCount: limits.headerBlockMax, type: 1, flags: 4)
        #expect(large.admit(whole, now: Self.now) == nil && !large.isInBlock)
        let above = HTTP2FrameHeader(payloadByteCount: limits.headerBlockMax + 1, type: 1, flags: 4)
        #expect(large.admit(above, now: Self.now) == .headersTooLarge)
    }
}
