import Base
import Glibc

/// The progress of an import, as a line for people: "12000 rows are settled, 38 %, 9500 a second, 2 min left".
struct ImportProgress {
    /// The size of the users' file. Nil: it is a pipe.
    let byteCount: Int64?
    private let beganAt: Instant
    /// The bytes that were read before the first row was sent: rows that an earlier run settled.
    private var skippedByteCount: Int64?

    init(byteCount: Int64?, beganAt: Instant = .now) {
        self.byteCount = byteCount
        self.beganAt = beganAt
    }

    /// `descriptor` is open to read the users' file.
    init(of descriptor: Int32) {
        var status = stat()
        let isFile = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        self.init(byteCount: isFile ? Int64(status.st_size) : nil)
    }

    mutating func noteSending(readByteCount: Int64) {
        if skippedByteCount == nil { skippedByteCount = readByteCount }
    }

    /// `settledNow`: the rows that this run settled. The end is estimated from the bytes read, whose rows are settled
    /// soon.
    func line(settled: Int64, settledNow: Int64, readByteCount: Int64, now: Instant = .now) -> String {
        var parts = ["\(settled) rows are settled"]
        let seconds = Double(now.nanoseconds - beganAt.nanoseconds) / 1e9
        if let byteCount, byteCount > 0 { parts.append("\(min(100, readByteCount * 100 / byteCount)) %") }
        guard seconds >= 1 else { return parts.joined(separator: ", ") }
        parts.append("\(Int64(clamping: Int(Double(settledNow) / seconds))) a second")
        if let byteCount, let skippedByteCount, readByteCount > skippedByteCount, byteCount >= readByteCount {
            let left = seconds * Double(byteCount - readByteCount) / Double(readByteCount - skippedByteCount)
            parts.append("\(Self.words(min(left, 1e8))) left")
        }
        return parts.joined(separator: ", ")
    }

    private static func words(_ seconds: Double) -> String {
        let seconds = Int(seconds.rounded(.up))
        if seconds < 120 { return "\(seconds) s" }
        return seconds < 7_200 ? "\((seconds + 59) / 60) min" : "\((seconds + 3_599) / 3_600) h"
    }
}
