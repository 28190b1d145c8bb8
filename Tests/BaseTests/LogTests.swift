import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Base

@Suite struct LogTests {
    private final class Lines: Sendable {
        private let storage = Mutex<[String]>([])
        var all: [String] { storage.withLock { $0 } }
        func append(_ line: [UInt8]) { storage.withLock { $0.append(String(decoding: line, as: UTF8.self)) } }
    }

    private let lines = Lines()

    private func log(_ level: Log.Level = .debug) -> Log {
        let lines = lines
        return Log(level: level, clock: ManualClock(startingAt: Timestamp(microseconds: 42)).clock) { lines.append($0) }
    }

    @Test func anEventIsOneLineOfJSON() {
        log().info("user created", ["uid": .text("u1"), "count": .integer(-3)])
        #expect(
            lines.all == [
                #"{"time_micros":42,"level":"info","message":"user created","uid":"u1","count":-3}"# + "\n"
            ])
    }

    @Test func eachLevelHasItsNameAndHidesTheLowerOnes() {
        for level in Log.Level.allCases {
            let lines = Lines()
            let log = Log(level: level) { lines.append($0) }
            log.debug("m")
            log.info("m")
            log.notice("m")
            log.warning("m")
            log.error("m")
            let expected = Log.Level.allCases.filter { $0 >= level }.map(\.name)
            #expect(lines.all.count == expected.count)
            for (line, name) in zip(lines.all, expected) { #expect(line.contains("\"level\":\"\(name)\"")) }
        }
        #expect(Log.Level.allCases.map(\.name) == ["debug", "info", "notice", "warning", "error"])
    }

    @Test func nothingBreaksOutOfAValue() {
        log().info("m", ["v": .text("a\"b\\c\nd\u{0}\u{7F}é\u{2028}😀\u{1B}[31m")])
        let value =
            #"a\"b\\c\u000ad\u0000\u007f\u00e9\u2028\ud83d\ude00\u001b[31m"#
        #expect(lines.all == [#"{"time_micros":42,"level":"info","message":"m","v":""# + value + "\"}\n"])
        let line = lines.all[0]
        #expect(line.utf8.allSatisfy { (0x20...0x7E).contains($0) || $0 == 0x0A })
        #expect(line.utf8.count { $0 == 0x0A } == 1)
    }

    @Test func longValuesAreCut() {
        func value(of text: String) -> Substring? {
            let lines = Lines()
            Log(level: .debug) { lines.append($0) }.info("m", ["v": .text(text)])
            return lines.all.first?.split(separator: "\"v\":\"").last?.dropLast(3)
        }
        #expect(value(of: String(repeating: "x", count: 512))?.count == 512)
        #expect(value(of: String(repeating: "x", count: 513))?.count == 512)
        #expect(value(of: String(repeating: "x", count: 1_000_000))?.count == 512)
        // A value is cut before a surrogate pair, never within it: half of a pair is not valid JSON.
        let cutAtPair = value(of: String(repeating: "x", count: 511) + "😀")
        #expect(cutAtPair?.count == 511)
        #expect(value(of: String(repeating: "x", count: 510) + "😀")?.hasSuffix(#"x\ud83d\ude00"#) == true)
    }

    @Test func `A value of bytes is written as the same text is`() {
        let values = ["", "plain", "a\"b", "back\\slash", "\n", "é😀", "\u{7F}", String(repeating: "x", count: 600)]
        for value in values {
            var lines = [LogLine(time: Timestamp(microseconds: 1), level: "info", message: "m")]
            lines.append(lines[0])
            lines[0].append("v", .text(value))
            lines[1].append("v", Text(value))
            #expect(lines[0].finish() == lines[1].finish())
        }
        // Bytes that are not UTF-8 cannot break out of the value either.
        var line = LogLine(time: Timestamp(microseconds: 1), level: "info", message: "m")
        [UInt8]([0xFF, 0x22, 0x0A]).withUnsafeBytes { line.append("v", utf8: $0) }
        #expect(String(decoding: line.finish(), as: UTF8.self).hasSuffix(#""v":"\ufffd\"\u000a"}"# + "\n"))
    }

    @Test func `Lines that nobody reads stop neither a caller nor the end, and those dropped are counted`() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        let filler = [UInt8](repeating: UInt8(ascii: "x"), count: 65_536)
        while write(ends[1], filler, filler.count) > 0 {}
        _ = fcntl(ends[1], F_SETFL, 0)
        let log = Log(to: ends[1], byteCountMax: 1_000)
        for _ in 0..<100 { log.info("m") }
        log.close()
        // Only now does the test read.
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        var (text, counts) = ("", (written: 0, dropped: 0))
        var chunk = filler
        try blockUntil("each line is written or counted: \(counts)") {
            let count = read(ends[0], &chunk, chunk.count)
            if count > 0 { text += String(decoding: chunk.prefix(count), as: UTF8.self) }
            counts = Self.counts(in: text)
            return counts.written + counts.dropped >= 100
        }
        #expect(counts.written + counts.dropped == 100)
        #expect(counts.written < 100)
        close(ends[0])
        close(ends[1])
    }

    /// The lines with the message `m`, and the number of lines that were dropped according to the log.
    private static func counts(in text: String) -> (written: Int, dropped: Int) {
        let start = #""message":"log lines dropped","count":"#
        var counts = (written: 0, dropped: 0)
        for line in text.split(separator: "\n") {
            if line.hasSuffix(#""message":"m"}"#) { counts.written += 1 }
            if let found = line.split(separator: start).last, found != line {
                counts.dropped += Int(found.dropLast()) ?? 0
            }
        }
        return counts
    }

    @Test func aClosedLogHasEndedItsWriter() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        // The writer's thread holds the clock, for the lines that it makes itself.
        weak var held: ManualClock?
        do {
            let clock = ManualClock(startingAt: Timestamp(microseconds: 42))
            held = clock
            let log = Log(to: ends[1], byteCountMax: 1_000, level: .error, clock: clock.clock)
            log.info("below the level: not written")
            log.error("before the end")
            log.close()
            log.close()
            // `error` does not wait until this line is written.
            log.error("after the end")
        }
        try blockUntil("the writer has ended") { held == nil }
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = read(ends[0], &chunk, chunk.count)
        let text = String(decoding: chunk.prefix(max(0, count)), as: UTF8.self)
        #expect(text.hasPrefix(#"{"time_micros":42,"level":"error","message":"before the end"}"# + "\n"))
        #expect(!text.contains("below the level"))
        close(ends[0])
        close(ends[1])
    }
}
