public import Base
import Crypto

/// Codes of authenticator apps (RFC 6238 over RFC 4226): six digits of SHA-1, a new code every 30 seconds. These are
/// the parameters that every app knows. Pure.
public enum TOTP {
    public static let secretByteCount = 20
    public static let digitCount = 6
    public static let periodSeconds: Int64 = 30
    /// A code of the step before or after the present one is good, too: clocks differ, and typing takes time.
    static let stepsAround: Int64 = 1

    /// The code of RFC 4226 for a counter; `digits` is six except in the RFC's own examples.
    public static func code(secret: Secret, counter: UInt64, digits: Int = digitCount) -> [UInt8] {
        let tag = withUnsafeBytes(of: counter.bigEndian) { HMACSHA1.tag(of: $0, key: secret) }
        // Proof: a tag has 20 bytes, and the offset is below 16.
        let offset = Int(tag[HMACSHA1.tagByteCount - 1] & 15)
        var value = tag[offset..<offset + 4].bigEndianNumber & 0x7FFF_FFFF
        var code = [UInt8](repeating: 0, count: digits)
        for index in code.indices.reversed() {
            // Proof: the index is one of the array, and a digit is below 10.
            code[index] = UInt8(ascii: "0") + UInt8(value % 10)
            value /= 10
        }
        return code
    }

    public static func step(at time: Timestamp) -> Int64 { time.seconds / periodSeconds }

    /// The step whose code is `code`; nil when no step around `now` has this code, or the step was used.
    ///
    /// `lastStep` is the latest step that was used. All steps are compared, even after a match.
    public static func step(of code: [UInt8], secret: Secret, now: Timestamp, after lastStep: Int64) -> Int64? {
        let present = step(at: now)
        // A step far ahead of the time was used under a clock that was wrong. It would lock the user out until then.
        let isCredible = lastStep <= present + stepsAround + TimeKeeping.slack.components.seconds / periodSeconds
        var found: Int64?
        for step in (present - stepsAround)...(present + stepsAround) {
            guard let counter = UInt64(exactly: step) else { continue }
            let isRight = constantTimeEqual(self.code(secret: secret, counter: counter), code)
            if isRight, !isCredible || step > lastStep { found = step }
        }
        return found
    }

    /// The URI that an authenticator app reads from a QR code (Google's key URI format).
    public static func uri(secret: Secret, issuer: Text, account: Text) -> Secret {
        let label = PercentEncoding.encode(issuer) + [UInt8]("%3A".utf8) + PercentEncoding.encode(account)
        let key = secret.withBytes { Base32.encode($0) }
        let parameters = [UInt8]("&algorithm=SHA1&digits=\(digitCount)&period=\(periodSeconds)".utf8)
        return Secret(
            [UInt8]("otpauth://totp/".utf8) + label + [UInt8]("?secret=".utf8) + key + [UInt8]("&issuer=".utf8)
                + PercentEncoding.encode(issuer) + parameters)
    }
}
