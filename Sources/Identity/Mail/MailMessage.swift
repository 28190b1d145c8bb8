import Base
import Messages

/// A mail as it goes over the wire: multipart/alternative, both parts base64 (RFC 5322, 2045, 2047). Pure.
///
/// No value can break out of its header: everything that is not plain ASCII without controls is encoded. No line has
/// more than 76 characters (RFC 2045 §6.8, RFC 2047 §2), except for a longer address or message id, which must not be
/// divided.
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
        let domain = senderAddress.bytes.split(separator: UInt8(ascii: "@")).last.map { Text(unchecked: Array($0)) }
        var head = [
            "From: \(phrase(senderName, behind: "From: "))<\(senderAddress)>", "To: <\(recipient)>",
            "Subject: \(unstructured(contents.subject, behind: "Subject: "))", "Date: \(Self.date(createdAt))",
            "Message-ID: <\(messageID)@\(domain ?? "postern.invalid")>", "MIME-Version: 1.0",
            "Auto-Submitted: auto-generated",
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

    /// A display name, always encoded, so that none of its characters has a special meaning. The address begins a line
    /// of its own.
    private func phrase(_ name: Text, behind field: StaticString) -> String {
        name.isEmpty ? "" : Self.encodedWords(name, behind: field) + "\r\n "
    }

    private func unstructured(_ text: Text, behind field: StaticString) -> String {
        let isPlain = text.byteCount <= 60 && text.bytes.allSatisfy { (0x20...0x7E).contains($0) }
        // "=?" would be read as the beginning of an encoded word.
        return isPlain && !text.contains("=?") ? text.string : Self.encodedWords(text, behind: field)
    }

    /// RFC 2047: words of whole scalars, one to a line, no line of more than 76 characters. The first word follows the
    /// field's name, each other word a blank.
    static func encodedWords(_ text: Text, behind field: StaticString) -> String {
        var words: [[UInt8]] = [[]]
        var byteCountMax = wordByteCountMax(behind: field.utf8CodeUnitCount)
        for scalar in text.string.unicodeScalars {
            let piece = UTF8.encode(scalar).map(Array.init) ?? []
            if words[words.count - 1].count + piece.count > byteCountMax {
                words.append([])
                byteCountMax = wordByteCountMax(behind: 1)
            }
            words[words.count - 1] += piece
        }
        return words.map { "=?utf-8?B?\(String(decoding: Base64.standard.encode($0), as: UTF8.self))?=" }
            .joined(separator: "\r\n ")
    }

    /// The bytes of a word before Base64, which makes four characters of three bytes. `=?utf-8?B?` and `?=` are twelve
    /// characters, and a word has 75 characters at most.
    private static func wordByteCountMax(behind columnCount: Int) -> Int { (min(75, 76 - columnCount) - 12) / 4 * 3 }

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
