public import Base

/// A password as the store keeps it: a salted hash with everything needed to check it, in one line of text.
///
/// New ones are argon2id; others come in by import and are replaced at the next sign-in. Hashing and checking take
/// milliseconds to a second on the caller's thread: password pool only. Any thread; prints without the hash.
public struct PasswordCredential: Sendable {
    public enum Kind: String, Sendable, CaseIterable {
        case argon2id
        case firebaseScrypt = "firebase-scrypt"
        case bcrypt
    }

    private enum Hash {
        case argon2id(Argon2idHash)
        case firebaseScrypt(FirebaseScryptHash)
        case bcrypt(BcryptHash)
    }

    private let hash: Hash

    /// What checking it costs, without anything of the hash: `$argon2id$v=19$m=19456,t=2,p=1`, `$2b$10`,
    /// `$firebase-scrypt$r=8,m=14`.
    public var cost: Text {
        switch hash {
        case .argon2id(let hash): Text(hash.cost)
        case .firebaseScrypt(let hash): Text(hash.cost)
        case .bcrypt(let hash): Text(hash.cost)
        }
    }

    /// What one check takes.
    public var work: Work {
        switch hash {
        case .argon2id(let hash): hash.work
        case .firebaseScrypt(let hash): hash.work
        case .bcrypt(let hash): hash.work
        }
    }

    /// Reads the stored form, and what other systems export in the same form:
    ///
    /// - `$argon2id$v=19$m=19456,t=2,p=1$salt$tag`: m ≤ 256 MiB, t ≤ 10, p ≤ 4, salt 8–64 bytes, tag 16–64
    /// - `$firebase-scrypt$r=8,m=14$salt$separator$signer-key-id$hash`: r ≤ 8, m ≤ 14
    /// - `$2b$10$…` (also 2a, 2y): cost 4–14
    ///
    /// Throws `malformed`, `unsupported`, `outOfRange`.
    public init(stored: Text) throws(CryptoError) {
        guard let string = PHCString(stored) else { throw .malformed }
        switch string.id {
        case "argon2id": self.hash = .argon2id(try Argon2idHash(string))
        case FirebaseScryptHash.id: self.hash = .firebaseScrypt(try FirebaseScryptHash(string))
        case "2a", "2b", "2y": self.hash = .bcrypt(try BcryptHash(stored))
        default: throw .unsupported
        }
    }

    /// From the fields of a Firebase export: `hash` and `salt` of the user, the rest of its project. The signer key
    /// itself is given to `verify` by its id ([A-Za-z0-9_-], 1 to 64). Throws `malformed`, `outOfRange`.
    public init(
        firebaseScryptHash hash: [UInt8], salt: [UInt8], saltSeparator: [UInt8], rounds: Int, memoryCost: Int,
        signerKeyID: Text
    ) throws(CryptoError) {
        self.hash = .firebaseScrypt(
            try FirebaseScryptHash(
                hash: hash, salt: salt, saltSeparator: saltSeparator, rounds: rounds, memoryCost: memoryCost,
                signerKeyID: signerKeyID))
    }

    init(argon2id hash: Argon2idHash) { self.hash = .argon2id(hash) }

    /// One line of ASCII, at most some 600 bytes; `init(stored:)` reads it.
    public var stored: Text {
        switch hash {
        case .argon2id(let hash): Text(hash.stored)
        case .firebaseScrypt(let hash): Text(hash.stored)
        case .bcrypt(let hash): Text(hash.stored)
        }
    }

    public var kind: Kind {
        switch hash {
        case .argon2id: .argon2id
        case .firebaseScrypt: .firebaseScrypt
        case .bcrypt: .bcrypt
        }
    }

    /// The signer key `verify` will ask for.
    public var signerKeyID: Text? {
        if case .firebaseScrypt(let hash) = hash { hash.signerKeyID } else { nil }
    }

    /// The fields that `init(firebaseScryptHash:…)` makes such a credential of; nil for another kind.
    public var firebaseScrypt: FirebaseScryptFields? {
        guard case .firebaseScrypt(let hash) = hash else { return nil }
        return FirebaseScryptFields(
            hash: hash.hash, salt: hash.salt, saltSeparator: hash.saltSeparator, rounds: hash.rounds,
            memoryCost: hash.memoryCost, signerKeyID: hash.signerKeyID)
    }

    /// Whether a hash made now would be another: any other kind, more cost or less. Less too, so that all users of a
    /// deployment take the same time.
    public func needsRehash(under profile: PasswordHashProfile) -> Bool {
        if case .argon2id(let hash) = hash { !hash.isMade(by: profile) } else { true }
    }
}

extension PasswordCredential {
    /// Hashes a new password. Throws `outOfMemory`.
    @available(*, noasync, message: "works for milliseconds: password pool only")
    public static func hash(
        _ password: Secret, profile: PasswordHashProfile, random: RandomSource
    ) throws(CryptoError) -> PasswordCredential {
        let salt = random.bytes(Argon2idHash.saltByteCount)
        let tag = try Argon2idHash.tag(of: password, profile: profile, salt: salt)
        return PasswordCredential(argon2id: Argon2idHash(profile: profile, salt: salt, tag: tag))
    }

    /// Compares in constant time. Throws `outOfMemory`, and `unknownKey` when `signerKeys` has no key of the id that a
    /// Firebase hash names.
    @available(*, noasync, message: "works for milliseconds: password pool only")
    public func verify(
        _ password: Secret, signerKeys: (Text) -> Secret? = { _ in nil }
    ) throws(CryptoError) -> Bool {
        switch hash {
        case .argon2id(let hash): return try hash.verify(password)
        case .bcrypt(let hash): return try hash.verify(password)
        case .firebaseScrypt(let hash):
            guard let signerKey = signerKeys(hash.signerKeyID) else { throw .unknownKey(id: hash.signerKeyID) }
            return try hash.verify(password, signerKey: signerKey)
        }
    }
}

extension PasswordCredential: CustomStringConvertible, CustomReflectable {
    public var description: String { "<\(kind.rawValue) hash>" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// What a Firebase export says of a password, and of how its project hashes.
public struct FirebaseScryptFields: Sendable {
    public let hash: [UInt8]
    public let salt: [UInt8]
    public let saltSeparator: [UInt8]
    public let rounds: Int
    public let memoryCost: Int
    /// By which the signer key is kept.
    public let signerKeyID: Text
}
