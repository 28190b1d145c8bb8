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
        // The last but one is the end of a request that was not begun.
        for (type, flags): (UInt8, UInt8) in [(2, 0), (3, 0), (4, 0), (7, 0), (8, 0), (0, 0), (0, 1), (0xFA, 0)] {
            let (all, oneMore) = admitted(
                limits.idleFramesPerSecondMax, HTTP2FrameHeader(payloadByteCount: 0, type: type, flags: flags))
            #expect(all && oneMore == .tooManyIdleFrames, "type \(type)")
        }
        let ping = admitted(limits.pingsPerSecondMax, HTTP2FrameHeader(payloadByteCount: 8, type: 6))
        #expect(ping.all && ping.oneMore == .tooManyPings)
    }

    @Test func `Frames that a working client sends often pass`() {
        for frame in [
            HTTP2FrameHeader(payloadByteCount: 1, type: 0), HTTP2FrameHeader(payloadByteCount: 0, type: 4, flags: 1),
            HTTP2FrameHeader(payloadByteCount: 100, type: 1, flags: 4),
        ] {
            let (all, oneMore) = admitted(100_000, frame)
            #expect(all && oneMore == nil, "type \(frame.type)")
        }
    }

    /// Type 8 is WINDOW_UPDATE.
    @Test func `WINDOW_UPDATEs that follow requests and DATA are not counted, and others are`() {
        let idleMax = Limits().idleFramesPerSecondMax
        let update = HTTP2FrameHeader(payloadByteCount: 4, type: 8)
        var flood = HTTP2FloodGuard(limits: Limits())
        func passes(_ count: Int) -> Bool {
            (0..<count).allSatisfy { _ in flood.admit(update, now: Self.now) == nil }
        }
        for _ in 0..<1_000 {
            flood.sentData()
            #expect(passes(20))
            #expect(flood.admit(HTTP2FrameHeader(payloadByteCount: 100, type: 1, flags: 5), now: Self.now) == nil)
            #expect(passes(2))
        }
        flood.sentHeaders()
        #expect(passes(idleMax) && !passes(1))
    }

    /// Types 0 and 1 are DATA and HEADERS; flag 1 is END_STREAM.
    @Test func `DATA without content may end each request once`() {
        let idleMax = Limits().idleFramesPerSecondMax
        let (begin, end) = (
            HTTP2FrameHeader(payloadByteCount: 100, type: 1, flags: 4),
            HTTP2FrameHeader(payloadByteCount: 0, type: 0, flags: 1)
        )
        var flood = HTTP2FloodGuard(limits: Limits())
        for _ in 0..<10 * idleMax {
            #expect(flood.admit(begin, now: Self.now) == nil && flood.admit(end, now: Self.now) == nil)
        }
        for _ in 0..<idleMax { #expect(flood.admit(end, now: Self.now) == nil) }
        #expect(flood.admit(end, now: Self.now) == .tooManyIdleFrames)
    }

    /// Type 6 is PING: a client that receives much sends one after each answer, to measure the path.
    @Test func `PINGs between answers are not counted, and answers to PINGs not as PINGs`() {
        let limits = Limits()
        var flood = HTTP2FloodGuard(limits: limits)
        let ping = HTTP2FrameHeader(payloadByteCount: 8, type: 6)
        for _ in 0..<10 * limits.pingsPerSecondMax {
            flood.sentHeaders()
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
        // An end, of a request that was not begun.
        let end = admitted(most, HTTP2FrameHeader(payloadByteCount: 1, type: 0, flags: 9))
        #expect(end.all && end.oneMore == .tooManyIdleFrames)
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

    @Test func `The bytes of a block are known until a frame of another kind comes`() {
        var flood = HTTP2FloodGuard(limits: Limits())
        for (type, byteCount, sum) in [(1, 700, 700), (9, 50, 750), (0, 10, 0), (1, 20, 20), (1, 30, 30)] {
            let frame = HTTP2FrameHeader(payloadByteCount: byteCount, type: UInt8(type))
            #expect(flood.admit(frame, now: Self.now) == nil)
            #expect(flood.blockByteCount == sum)
        }
    }
}
