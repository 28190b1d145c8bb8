import Base

/// The names of the users a seeded tenant holds: a number makes the same name in `seed` and in every `run`.
///
/// All names of a kind have the same length, so that a request can be encoded once and its number patched in.
enum UserName {
    static let numberByteCount = 10
    static let password: Text = "bench-password-1"
    private static let emailSuffix = "@bench.example"

    /// 28 characters, as the server's own uids have.
    static func uid(_ number: Int) -> Text { Text("u00000000000000000" + digits(number)) }
    /// The email of a user that was imported, without a password.
    static func email(_ number: Int) -> Text { Text("u" + digits(number) + emailSuffix) }
    /// The email of a user with a password and one session, whose tokens are in the state file.
    static func sessionEmail(_ number: Int) -> Text { Text("s" + digits(number) + emailSuffix) }
    /// The email of a user with a password for sign-in; its sessions come and go.
    static func passwordEmail(_ number: Int) -> Text { Text("p" + digits(number) + emailSuffix) }
    /// The email of a user who signs in with the tool's own identity provider. Its issuer is another one in each run:
    /// accounts of an earlier issuer would refuse it. `run` as in `freshEmail`.
    static func federatedEmail(_ number: Int, run: UInt64) -> Text { email("i", number, run: run) }
    /// The email of a user that a run creates. `run` tells runs apart: 16 hexadecimal digits.
    static func freshEmail(_ number: Int, run: UInt64) -> Text { email("c", number, run: run) }

    private static func email(_ letter: String, _ number: Int, run: UInt64) -> Text {
        let run = Hex.encode((0..<8).reversed().map { UInt8(truncatingIfNeeded: run >> ($0 * 8)) })
        return Text(letter + run.string + "-" + digits(number) + emailSuffix)
    }

    /// Writes the number as `numberByteCount` decimal digits.
    static func writeDigits(_ number: Int, to target: UnsafeMutableRawPointer) {
        var rest = UInt64(number)
        for offset in stride(from: numberByteCount - 1, through: 0, by: -1) {
            target.storeBytes(of: UInt8(ascii: "0") + UInt8(rest % 10), toByteOffset: offset, as: UInt8.self)
            rest /= 10
        }
    }

    private static func digits(_ number: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: numberByteCount - text.count) + text
    }
}
