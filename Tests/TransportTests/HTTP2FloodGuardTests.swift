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

    @Test func `Requests after the last GOAWAY carry nothing`() {
        let max = Limits().idleFramesPerSecondMax
        var flood = HTTP2FloodGuard(limits: Limits())
        flood.ignoresRequests = true
        let requests = (0...max).map { Self.headers(flags: 4, stream: 2 * $0 + 1) }
        let reasons = requests.map { flood.admit($0, now: Self.now) }
        #expect(reasons.dropLast().allSatisfy { $0 == nil } && reasons.last == .tooManyIdleFrames)
    }

    @Test func `Frames that a working client sends often pass`() {
        for frame in [
            HTTP2FrameHeader(payloadByteCount: 1, type: 0), HTTP2FrameHeader(payloadByteCount: 0, type: 4, flags: 1),
        ] {
            let (all, oneMore) = admitted(100_000, frame)
            #expect(all && oneMore == nil, "type \(frame.type)")
        }
        var flood = HTTP2FloodGuard(limits: Limits())
        let requests = (0..<100_000).map { Self.headers(flags: 4, stream: 2 * $0 + 1) }
        #expect(requests.allSatisfy { flood.admit($0, now: Self.now) == nil })
    }

    private static func headers(_ byteCount: Int = 100, flags: UInt8, stream: Int) -> HTTP2FrameHeader {
        HTTP2FrameHeader(payloadByteCount: byteCount, type: 1, flags: flags, stream: UInt32(stream))
    }

    /// Flags 4 and 5: END_HEADERS without and with END_STREAM.
    @Test func `Headers on a stream that has ended carry nothing, and pay for nothing`() {
        let idleMax = Limits().idleFramesPerSecondMax
        var flood = HTTP2FloodGuard(limits: Limits())
        #expect(flood.admit(Self.headers(flags: 5, stream: 1), now: Self.now) == nil)
        let end = HTTP2FrameHeader(payloadByteCount: 0, type: 0, flags: 1, stream: 1)
        let update = HTTP2FrameHeader(payloadByteCount: 4, type: 8)
        for _ in 0..<2 { #expect(flood.admit(update, now: Self.now) == nil) }
        for _ in 0..<idleMax / 2 {
            #expect(flood.admit(Self.headers(0, flags: 4, stream: 1), now: Self.now) == nil)
            #expect(flood.admit(end, now: Self.now) == nil)
        }
        #expect(flood.admit(Self.headers(0, flags: 4, stream: 1), now: Self.now) == .tooManyIdleFrames)
        #expect(flood.admit(update, now: Self.now) == .tooManyIdleFrames)
    }

    @Test func `Trailers may end each request once`() {
        let idleMax = Limits().idleFramesPerSecondMax
        var flood = HTTP2FloodGuard(limits: Limits())
        for number in 0..<10 * idleMax {
            #expect(flood.admit(Self.headers(flags: 4, stream: 2 * number + 1), now: Self.now) == nil)
            #expect(flood.admit(Self.headers(flags: 5, stream: 2 * number + 1), now: Self.now) == nil)
        }
        let late = Self.headers(flags: 5, stream: 1)
        for _ in 0..<idleMax { #expect(flood.admit(late, now: Self.now) == nil) }
        #expect(flood.admit(late, now: Self.now) == .tooManyIdleFrames)
    }

    @Test func `Parts of a block without content count as frames that carry nothing`() {
        let limits = Limits()
        var flood = HTTP2FloodGuard(limits: limits)
        var refused: CloseReason?
        for number in 0...limits.idleFramesPerSecondMax where refused == nil {
            #expect(flood.admit(Self.headers(flags: 0, stream: 2 * number + 1), now: Self.now) == nil)
            refused = flood.admit(HTTP2FrameHeader(payloadByteCount: 0, type: 9, flags: 4), now: Self.now)
        }
        #expect(refused == .tooManyIdleFrames)
    }

    /// Type 8 is WINDOW_UPDATE.
    @Test func `WINDOW_UPDATEs that follow requests and DATA are not counted, and others are`() {
        let idleMax = Limits().idleFramesPerSecondMax
        let update = HTTP2FrameHeader(payloadByteCount: 4, type: 8)
        var flood = HTTP2FloodGuard(limits: Limits())
        func passes(_ count: Int) -> Bool {
            (0..<count).allSatisfy { _ in flood.admit(update, now: Self.now) == nil }
        }
        for number in 0..<1_000 {
            flood.sentData()
            #expect(passes(20))
            #expect(flood.admit(Self.headers(flags: 5, stream: 2 * number + 1), now: Self.now) == nil)
            #expect(passes(2))
        }
        flood.sentHeaders()
        #expect(passes(idleMax) && !passes(1))
    }

    /// Types 0 and 1 are DATA and HEADERS; flag 1 is END_STREAM.
    @Test func `DATA without content may end each request once`() {
        let idleMax = Limits().idleFramesPerSecondMax
        let end = HTTP2FrameHeader(payloadByteCount: 0, type: 0, flags: 1)
        var flood = HTTP2FloodGuard(limits: Limits())
        for number in 0..<10 * idleMax {
            #expect(flood.admit(Self.headers(flags: 4, stream: 2 * number + 1), now: Self.now) == nil)
            #expect(flood.admit(end, now: Self.now) == nil)
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
