public import Base

/// A password as the store keeps it: a salted hash with everything needed to check it, in one line of text.
///
/// New hashes are argon2id; other kinds come in by import and are replaced at the next sign-in. Hashing and checking
/// take milliseconds to a second on the caller's thread: password pool only. Any thread; prints without the hash.
public struct PasswordCredential: Sendable {
    public typealias Kind = PasswordHashKind
    public typealias Work = PasswordHashWork

    let hash: any PasswordHash

    /// The cost of checking it, without any part of the hash: `$argon2id$v=19$m=19456,t=2,p=1`, `$2b$10`,
    /// `$firebase-scrypt$r=8,m=14`.
    public var cost: Text { Text(hash.cost) }

    /// The memory and the time of one check.
    public var work: Work { hash.work }

    /// Reads the stored form, and hashes that other systems export in the same form:
    ///
    /// - `$argon2id$v=19$m=19456,t=2,p=1$salt$tag` (also argon2i, argon2d, `v=16`, `,data=…` behind p): m ≤ 256 MiB,
    ///   t ≤ 16, p ≤ 16, salt 8–64 bytes, tag 16–64, associated data 1–64
    /// - `$firebase-scrypt$r=8,m=14$salt$separator$signer-key-id$hash`: r ≤ 8, m ≤ 14
    /// - `$2b$10$…` (also 2a, 2y): cost 4–14
    /// - `$scrypt$ln=14,r=8,p=1$salt$key`: at most 256 MiB
    /// - `$pbkdf2-sha256$i=100000,l=32$salt$key` (also sha1, sha512): i ≤ 10,000,000, l = bytes of the key
    /// - `$hmac-sha256$p=1$salt$signer-key-id$tag` (also md5, sha1, sha512); p = 1: the password before the salt
    /// - `$sha256$r=1,p=0,h=0$salt$digest` (also md5, sha1, sha512): r ≤ 8192; h = 1: each round hashes hex digits
    ///
    /// Throws `malformed`, `unsupported`, `outOfRange`.
    public init(stored: Text) throws(CryptoError) {
        guard let string = PHCString(stored) else { throw .malformed }
        switch string.id {
        case "argon2id", "argon2i", "argon2d":
            if let hash = try Argon2Hash(string) { self.hash = hash } else { self.hash = try Argon2idHash(string) }
        case FirebaseScryptHash.id: self.hash = try FirebaseScryptHash(string)
        case "2a", "2b", "2y": self.hash = try BcryptHash(stored)
        default: self.hash = try Self.foreignHash(string)
        }
    }

    private static func foreignHash(_ string: PHCString) throws(CryptoError) -> any PasswordHash {
        if let hash = try DigestHash(string) { return hash }
        if let hash = try HMACHash(string) { return hash }
        if let hash = try PBKDF2Hash(string) { return hash }
        if let hash = try ScryptHash(string) { return hash }
        throw .unsupported
    }

    init(_ hash: any PasswordHash) { self.hash = hash }

    /// One line of ASCII, at most some 600 bytes; `init(stored:)` reads it.
    public var stored: Text { Text(hash.stored) }

    public var kind: Kind { hash.kind }

    /// The signer key `verify` will ask for.
    public var signerKeyID: Text? { hash.signerKeyID }

    /// Whether a new hash would differ: this one is of another kind, or its cost is higher or lower. A higher cost
    /// counts too, so that all users of a deployment take the same time.
    public func needsRehash(under profile: PasswordHashProfile) -> Bool {
        (hash as? Argon2idHash)?.isMade(by: profile) != true
    }
}

extension PasswordCredential {
    /// Hashes a new password. Throws `outOfMemory`.
    @available(*, noasync, message: "works for milliseconds: password pool only")
    public static func hash(
        _ password: Secret, profile: PasswordHashProfile, random: RandomSource
    ) throws(CryptoError) -> PasswordCredential {
        let salt = random.bytes(Argon2idHash.saltByteCount)
        let tag = try Argon2idHash.tag(of: password, memoryKiB: profile.memoryKiB, passes: profile.passes, salt: salt)
        return PasswordCredential(Argon2idHash(profile: profile, salt: salt, tag: tag))
    }

    /// Compares in constant time. Throws `outOfMemory`, and `unknownKey` if `signerKeys` has no key with the id that
    /// the hash names.
    @available(*, noasync, message: "works for milliseconds: password pool only")
    public func verify(
        _ password: Secret, signerKeys: (Text) -> Secret? = { _ in nil }
    ) throws(CryptoError) -> Bool {
        var signerKey: Secret?
        if let id = signerKeyID {
            guard let found = signerKeys(id) else { throw .unknownKey(id: id) }
            signerKey = found
        }
        return try hash.verify(password, signerKey: signerKey)
    }
}

extension PasswordCredential: CustomStringConvertible, CustomReflectable {
    public var description: String { "<\(kind.rawValue) hash>" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
