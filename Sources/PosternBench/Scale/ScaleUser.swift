import Base
import Crypto
import Messages

/// The users of `postern-bench users`: each has a value for every index, and a password hash of Firebase.
enum ScaleUser {
    /// The length of an exported Firebase hash, which is the signer key's.
    private static let hashByteCount = 64
    private static let saltByteCount = 10
    /// Each user is created this long after the one before, the last one this long before now.
    static let createdApartMicros: Int64 = 1_000_000
    static let providerID: Text = "google.com"

    static func spec() -> PasswordHashSpec {
        PasswordHashSpec(
            algorithm: .firebaseScrypt(
                FirebaseScryptSpec(
                    signerKey: Secret([UInt8](repeating: 7, count: hashByteCount)), saltSeparator: [7], rounds: 8,
                    memoryCost: 14)))
    }

    /// North American numbers of New York: seven digits are free.
    static func phoneNumber(_ number: Int) -> Text {
        let digits = String(number % 10_000_000)
        return Text("+1212" + String(repeating: "0", count: 7 - digits.count) + digits)
    }

    static func rawID(_ number: Int) -> Text { Text(String(100_000_000_000_000_000 + number)) }

    static func createdAtMicros(_ number: Int, of count: Int, now: Int64) -> Int64 {
        now - Int64(count - number) * createdApartMicros
    }

    /// Two users never have the same hash, so that the server cannot share data among them.
    static func user(_ number: Int, of count: Int, now: Int64) -> ImportUser {
        var user = ImportUser()
        user.uid = UserName.uid(number)
        user.email = UserName.email(number)
        user.emailVerified = true
        user.displayName = Text("Bench User \(number)")
        user.phoneNumber = phoneNumber(number)
        user.createdAtMicros = createdAtMicros(number, of: count, now: now)
        var generator = SeededGenerator(seed: UInt64(number))
        user.passwordHash = Secret(bytes(hashByteCount, &generator))
        user.salt = bytes(saltByteCount, &generator)
        user.providers = [
            ProviderInfo(
                providerID: providerID, rawID: rawID(number), email: user.email, displayName: user.displayName)
        ]
        return user
    }

    private static func bytes(_ count: Int, _ generator: inout SeededGenerator) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 7)
        while bytes.count < count {
            let word = generator.next()
            for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: word >> shift)) }
        }
        return Array(bytes.prefix(count))
    }
}
