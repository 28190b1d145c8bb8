public import Base

// Credentials that belong to nobody and take as long to check as real credentials, for users that do not exist.

extension PasswordCredential {
    /// A decoy that looks like a credential that is made now.
    public static func decoy(profile: PasswordHashProfile, random: RandomSource) -> PasswordCredential {
        let salt = random.bytes(Argon2idHash.saltByteCount)
        let tag = random.bytes(Argon2idHash.tagByteCount)
        return PasswordCredential(Argon2idHash(profile: profile, salt: salt, tag: tag))
    }

    /// A decoy that looks like a credential of this `cost`; nil if `cost` is not a cost.
    public static func decoy(cost: Text, random: RandomSource) -> PasswordCredential? {
        func encoded(_ byteCount: Int) -> String { PHCString.encode(random.bytes(byteCount)) }
        let tail: String
        switch PHCString(cost)?.id {
        case "argon2id", "argon2i", "argon2d":
            tail = "$\(encoded(Argon2idHash.saltByteCount))$\(encoded(Argon2idHash.tagByteCount))"
        case FirebaseScryptHash.id: tail = "$\(encoded(10))$\(encoded(1))$decoy$\(encoded(64))"
        // Salt and digest in bcrypt's own alphabet. Two bits of the last character are always zero.
        case "2b": tail = "$\(random.alphanumeric(52))."
        case ScryptHash.id: tail = "$\(encoded(16))$\(encoded(64))"
        case let id?: tail = foreignTail(id, cost, encoded)
        case nil: return nil
        }
        return try? PasswordCredential(stored: Text(cost.string + tail))
    }

    /// Salt, the id of a signer key if there is one, and the computed bytes.
    private static func foreignTail(_ id: String, _ cost: Text, _ encoded: (Int) -> String) -> String {
        // Not bytes: an id that is not ASCII is no id of ours either way.
        let parts = id.split(separator: "-", maxSplits: 1)
        let key = parts.first == "hmac" ? "$decoy" : ""
        let function = parts.last.flatMap { HashFunction(rawValue: String($0)) }
        let derived = PHCString(cost)?.fields.dropFirst().first.flatMap {
            PHCString.parameters($0, named: ["i", "l"])
        }
        let byteCount = min(derived?[1] ?? function?.byteCount ?? 0, PBKDF2Hash.keyByteCountRange.upperBound)
        return "$\(encoded(8))\(key)$\(encoded(byteCount))"
    }
}
