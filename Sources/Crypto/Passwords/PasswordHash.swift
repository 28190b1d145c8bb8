import Base

/// The algorithm of a password hash.
public enum PasswordHashKind: String, Sendable, CaseIterable {
    case argon2id
    case argon2i
    case argon2d
    case firebaseScrypt = "firebase-scrypt"
    case bcrypt
    case scrypt
    case pbkdf2SHA1 = "pbkdf2-sha1"
    case pbkdf2SHA256 = "pbkdf2-sha256"
    case pbkdf2SHA512 = "pbkdf2-sha512"
    case hmacMD5 = "hmac-md5"
    case hmacSHA1 = "hmac-sha1"
    case hmacSHA256 = "hmac-sha256"
    case hmacSHA512 = "hmac-sha512"
    case md5
    case sha1
    case sha256
    case sha512
}

/// Memory and time that one check needs.
public struct PasswordHashWork: Sendable, Equatable {
    public let memoryByteCount: Int
    /// The time on one core of a present-day server; right within a factor of three.
    public let time: Duration
}

/// The operations of every kind of password hash.
protocol PasswordHash: Sendable {
    var kind: PasswordHashKind { get }
    /// `PasswordCredential.cost`
    var cost: String { get }
    /// `PasswordCredential.stored`
    var stored: String { get }
    var work: PasswordHashWork { get }
    /// The id of the key that `verify` needs besides the password; nil for a hash that needs none.
    var signerKeyID: Text? { get }

    /// `signerKey` is given if there is a `signerKeyID`.
    func verify(_ password: Secret, signerKey: Secret?) throws(CryptoError) -> Bool
}

extension PasswordHash {
    var signerKeyID: Text? { nil }
}

extension Argon2idHash: PasswordHash {
    var kind: PasswordHashKind { .argon2id }

    func verify(_ password: Secret, signerKey: Secret?) throws(CryptoError) -> Bool { try verify(password) }
}

extension BcryptHash: PasswordHash {
    var kind: PasswordHashKind { .bcrypt }

    func verify(_ password: Secret, signerKey: Secret?) throws(CryptoError) -> Bool { try verify(password) }
}

extension FirebaseScryptHash: PasswordHash {
    var kind: PasswordHashKind { .firebaseScrypt }
    var signerKeyID: Text? { keyID }

    func verify(_ password: Secret, signerKey: Secret?) throws(CryptoError) -> Bool {
        guard let signerKey else { throw .unknownKey(id: keyID) }
        return try verify(password, signerKey: signerKey)
    }
}

/// The order in which a password and its salt are hashed.
public enum HashInputOrder: Sendable {
    case saltFirst
    case passwordFirst
}

extension PHCString {
    /// Ids of signer keys: `[A-Za-z0-9_-]`, 1 to 64 of them.
    static func keyID(_ id: Text) throws(CryptoError) -> Text {
        let isGood = id.bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard isGood, (1...64).contains(id.byteCount) else { throw .malformed }
        return id
    }
}
