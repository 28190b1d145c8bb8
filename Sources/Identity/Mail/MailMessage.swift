import Base
import Messages

/// A mail as it goes over the wire: multipart/alternative, both parts base64 (RFC 5322, 2045, 2047). Pure.
///
/// Whatever the words are, no line is longer than 78 characters and no header can be broken out of: everything that is
/// not plain ASCII without controls is encoded.
struct MailMessage {
    var messageID: Text
    var senderName: Text
    var senderAddress: Text
    var replyTo: Text
    var recipient: Text
    var contents: OutboxContents
    var createdAt: Timestamp

    func bytes() -> [UInt8] {
        let boundary = "postern-\(messageID)"
        let domain = senderAddress.string.split(separator: "@").last.map(String.init) ?? "postern.invalid"
        var head = [
            "From: \(Self.phrase(senderName)) <\(senderAddress)>", "To: <\(recipient)>",
            "Subject: \(Self.encoded(contents.subject))", "Date: \(Self.date(createdAt))",
            "Message-ID: <\(messageID)@\(domain)>", "MIME-Version: 1.0", "Auto-Submitted: auto-generated",
            "Content-Type: multipart/alternative;\r\n boundary=\"\(boundary)\"",
        ]
        if !replyTo.isEmpty { head.append("Reply-To: <\(replyTo)>") }
        var text = head.joined(separator: "\r\n") + "\r\n\r\n"
        for (type, body) in [("text/plain", contents.text), ("text/html", contents.html)] {
            text += "--\(boundary)\r\nContent-Type: \(type); charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n"
            text += Self.lines(of: Base64.standard.encode(body.bytes), max: 76) + "\r\n"
        }
        return [UInt8]((text + "--\(boundary)--\r\n").utf8)
    }

    /// A display name, always quoted by encoding it: then no character of it means anything.
    private static func phrase(_ name: Text) -> String { name.isEmpty ? "" : encodedWords(name) }

    private static func encoded(_ text: Text) -> String {
        let isPlain = text.byteCount <= 60 && text.bytes.allSatisfy { (0x20...0x7E).contains($0) }
        // "=?" would be read as the beginning of an encoded word.
        return isPlain && !text.contains("=?") ? text.string : encodedWords(text)
    }

    /// RFC 2047: words of at most 75 characters, each of whole characters, folded one to a line.
    private static func encodedWords(_ text: Text) -> String {
        var words: [[UInt8]] = [[]]
        for character in text.string {
            let bytes = Array(String(character).utf8)
            for piece in bytes.count > 45 ? character.unicodeScalars.map({ Array(String($0).utf8) }) : [bytes] {
                if words[words.count - 1].count + piece.count > 45 { words.append([]) }
                words[words.count - 1] += piece
            }
        }
        return words.map { "=?utf-8?B?\(String(decoding: Base64.standard.encode($0), as: UTF8.self))?=" }
            .joined(separator: "\r\n ")
    }

    private static func lines(of bytes: [UInt8], max: Int) -> String {
        stride(from: 0, to: bytes.count, by: max)
            .map { String(decoding: bytes[$0..<min($0 + max, bytes.count)], as: UTF8.self) }
            .joined(separator: "\r\n")
    }

    /// "Sat, 21 Nov 2026 06:20:00 +0000"; the days by Howard Hinnant's civil_from_days.
    static func date(_ time: Timestamp) -> String {
        let seconds = max(0, time.seconds)
        let (days, rest) = (seconds / 86_400, seconds % 86_400)
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
        func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        return "\(weekdays[Int(days % 7)]), \(two(day)) \(names[Int(month) - 1]) \(year) "
            + "\(two(rest / 3_600)):\(two(rest / 60 % 60)):\(two(rest % 60)) +0000"
    }
}
