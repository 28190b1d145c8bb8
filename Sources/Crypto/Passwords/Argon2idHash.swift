import Base
import CSodium
import Glibc

/// argon2id, version 19 (RFC 9106): Postern's own format, and hashes imported from elsewhere.
struct Argon2idHash: Sendable {
    static let memoryRange = 8...262_144
    static let passesRange = 1...16
    static let lanesRange = 1...16
    static let saltByteCount = 16
    static let tagByteCount = 32

    let memoryKiB: Int
    let passes: Int
    let lanes: Int
    let salt: [UInt8]
    let tag: [UInt8]

    init(profile: PasswordHashProfile, salt: [UInt8], tag: [UInt8]) {
        self.memoryKiB = profile.memoryKiB
        self.passes = profile.passes
        self.lanes = 1
        self.salt = salt
        self.tag = tag
    }

    /// `$argon2id$v=19$m=19456,t=2,p=1$salt$tag`, with salts of 8 to 64 and tags of 16 to 64 bytes.
    init(_ string: PHCString) throws(CryptoError) {
        guard string.fields.count == 5,
            let version = PHCString.parameters(string.fields[1], named: ["v"]),
            let costs = PHCString.parameters(string.fields[2], named: ["m", "t", "p"]),
            let salt = PHCString.decode(string.fields[3]), let tag = PHCString.decode(string.fields[4])
        else { throw .malformed }
        guard version == [19] else { throw .unsupported }
        guard Self.memoryRange.contains(costs[0]), Self.passesRange.contains(costs[1]),
            Self.lanesRange.contains(costs[2]), costs[0] >= 8 * costs[2],
            (8...64).contains(salt.count), (16...64).contains(tag.count)
        else { throw .outOfRange }
        self.memoryKiB = costs[0]
        self.passes = costs[1]
        self.lanes = costs[2]
        self.salt = salt
        self.tag = tag
    }

    var cost: String { "$argon2id$v=19$m=\(memoryKiB),t=\(passes),p=\(lanes)" }
    var stored: String { "\(cost)$\(PHCString.encode(salt))$\(PHCString.encode(tag))" }

    func isMade(by profile: PasswordHashProfile) -> Bool {
        memoryKiB == profile.memoryKiB && passes == profile.passes && lanes == 1
            && salt.count == Self.saltByteCount && tag.count == Self.tagByteCount
    }

    /// Throws `outOfMemory`. It occupies the caller's thread for as long as the cost says.
    static func tag(
        of password: Secret, memoryKiB: Int, passes: Int, salt: [UInt8], byteCount: Int = tagByteCount
    ) throws(CryptoError) -> [UInt8] {
        precondition(salt.count == saltByteCount, "a salt of \(salt.count) bytes")
        Sodium.start
        var tag = [UInt8](repeating: 0, count: byteCount)
        let code = password.withCharacters { characters, count in
            crypto_pwhash(
                &tag, UInt64(clamping: byteCount), characters, UInt64(clamping: count), salt, UInt64(clamping: passes),
                memoryKiB * 1024, crypto_pwhash_ALG_ARGON2ID13)
        }
        // All parameters were checked, so only the allocation can fail.
        guard code == 0 else { throw .outOfMemory }
        return tag
    }

    func verify(_ password: Secret) throws(CryptoError) -> Bool {
        guard lanes == 1, salt.count == Self.saltByteCount else { return verifyForeignShape(password) }
        let computed = try Self.tag(
            of: password, memoryKiB: memoryKiB, passes: passes, salt: salt, byteCount: tag.count)
        return constantTimeEqual(computed, tag)
    }

    /// libsodium takes several lanes and other salts only in its string form, where it does not tell "no memory" from
    /// "wrong" (1.0.18). So an imported hash may be refused for lack of memory, until it is replaced at sign-in.
    private func verifyForeignShape(_ password: Secret) -> Bool {
        Sodium.start
        // The parameter is declared as 128 characters; it is read up to its NUL.
        let characters = stored.utf8CString + repeatElement(0, count: Int(crypto_pwhash_STRBYTES))
        return characters.withUnsafeBufferPointer { string in
            password.withCharacters { characters, count in
                crypto_pwhash_str_verify(string.baseAddress!, characters, UInt64(count)) == 0
            }
        }
    }
}
