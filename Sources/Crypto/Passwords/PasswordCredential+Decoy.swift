public import Base

// Credentials that belong to nobody and take as long to check as real ones: for users that do not exist.

extension PasswordCredential {
    /// As one that is made now.
    public static func decoy(profile: PasswordHashProfile, random: RandomSource) -> PasswordCredential {
        let salt = random.bytes(Argon2idHash.saltByteCount)
        let tag = random.bytes(Argon2idHash.tagByteCount)
        return PasswordCredential(argon2id: Argon2idHash(profile: profile, salt: salt, tag: tag))
    }

    /// As one of this `cost`; nil when that is none.
    public static func decoy(cost: Text, random: RandomSource) -> PasswordCredential? {
        func encoded(_ byteCount: Int) -> String { PHCString.encode(random.bytes(byteCount)) }
        let tail: String
        switch PHCString(cost)?.id {
        case "argon2id": tail = "$\(encoded(Argon2idHash.saltByteCount))$\(encoded(Argon2idHash.tagByteCount))"
        case FirebaseScryptHash.id: tail = "$\(encoded(10))$\(encoded(1))$decoy$\(encoded(64))"
        // Salt and digest in bcrypt's own alphabet, of whose last character two bits are always zero.
        case "2b": tail = "$\(random.alphanumeric(52))."
        default: return nil
        }
        return try? PasswordCredential(stored: Text(cost.string + tail))
    }
}
