import Base
import Glibc

extension Timestamp {
    /// `2026-01-31T12:00:00Z`, with microseconds where there are any.
    var rfc3339: String {
        var seconds = time_t(seconds)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let date = "\(digits(parts.tm_year + 1900, 4))-\(digits(parts.tm_mon + 1, 2))-\(digits(parts.tm_mday, 2))"
        let time = "\(digits(parts.tm_hour, 2)):\(digits(parts.tm_min, 2)):\(digits(parts.tm_sec, 2))"
        let fraction = microseconds - self.seconds * 1_000_000
        return "\(date)T\(time)" + (fraction == 0 ? "" : ".\(digits(Int32(fraction), 6))") + "Z"
    }

    /// `2026-01-31` or `2026-01-31T12:00:00Z`, with or without a fraction; UTC only.
    init?(rfc3339 text: String) {
        let halves = text.split(separator: "T", omittingEmptySubsequences: false)
        let date = halves[0].split(separator: "-", omittingEmptySubsequences: false).map { Int32($0) }
        guard date.count == 3, let year = date[0], let month = date[1], let day = date[2], (1970...9999).contains(year),
            (1...12).contains(month), (1...31).contains(day)
        else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
        var fraction: Int64 = 0
        if halves.count == 2 {
            guard halves[1].last == "Z" else { return nil }
            let pieces = halves[1].dropLast().split(separator: ".", omittingEmptySubsequences: false)
            let time = pieces[0].split(separator: ":", omittingEmptySubsequences: false).map { Int32($0) }
            guard pieces.count <= 2, time.count == 3, let hour = time[0], let minute = time[1], let second = time[2],
                (0...23).contains(hour), (0...59).contains(minute), (0...59).contains(second)
            else { return nil }
            (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
            if pieces.count == 2 {
                guard (1...6).contains(pieces[1].count), let number = Int64(pieces[1]), number >= 0 else { return nil }
                fraction = (pieces[1].count..<6).reduce(number) { number, _ in number * 10 }
            }
        } else if halves.count > 2 {
            return nil
        }
        let seconds = timegm(&parts)
        // timegm(3) turns 31 February into 3 March.
        guard parts.tm_mday == day else { return nil }
        self.init(microseconds: Int64(seconds) * 1_000_000 + fraction)
    }
}

private func digits(_ value: Int32, _ count: Int) -> String {
    let text = String(value)
    return String(repeating: "0", count: max(0, count - text.count)) + text
}
