import Base
import COpenSSL

/// PBKDF2 with HMAC (RFC 8018): `pbkdf2-sha1`, `pbkdf2-sha256`, `pbkdf2-sha512`. The derived key is as long as the key
/// in the hash.
struct PBKDF2Hash: PasswordHash {
    let function: HashFunction
    let rounds: Int
    let salt: [UInt8]
    let key: [UInt8]

    static let roundsRange = 1...10_000_000
    static let keyByteCountRange = 16...128
    private static let idPrefix = "pbkdf2-"

    init(function: HashFunction, rounds: Int, salt: [UInt8], key: [UInt8]) throws(CryptoError) {
        guard function != .md5 else { throw .unsupported }
        guard Self.roundsRange.contains(rounds), salt.count <= DigestHash.saltByteCountMax,
            Self.keyByteCountRange.contains(key.count)
        else { throw .outOfRange }
        self.function = function
        self.rounds = rounds
        self.salt = salt
        self.key = key
    }

    /// `$pbkdf2-sha256$i=100000,l=32$salt$key`; l is the key's length, which is part of the cost.
    init?(_ string: PHCString) throws(CryptoError) {
        // Not bytes: an id that is not ASCII is no id of ours either way.
        guard string.id.hasPrefix(Self.idPrefix),
            let function = HashFunction(rawValue: String(string.id.dropFirst(Self.idPrefix.count)))
        else { return nil }
        guard string.fields.count == 4, let parameters = PHCString.parameters(string.fields[1], named: ["i", "l"]),
            let salt = PHCString.decode(string.fields[2]), let key = PHCString.decode(string.fields[3]),
            key.count == parameters[1]
        else { throw .malformed }
        try self.init(function: function, rounds: parameters[0], salt: salt, key: key)
    }

    var kind: PasswordHashKind {
        switch function {
        case .sha1: .pbkdf2SHA1
        case .sha512: .pbkdf2SHA512
        case .md5, .sha256: .pbkdf2SHA256
        }
    }

    var cost: String { "$\(Self.idPrefix)\(function.rawValue)$i=\(rounds),l=\(key.count)" }
    var stored: String { "\(cost)$\(PHCString.encode(salt))$\(PHCString.encode(key))" }

    /// 400 ns for a round of each block, and 500 ns with SHA-512. Measured with OpenSSL 3 on one core: SHA-1 takes
    /// 220 ns and SHA-256 235 ns, or 280 and 420 ns on a processor without instructions for SHA; SHA-512 takes 520 ns.
    var work: PasswordHashWork {
        let blockCount = (key.count + function.byteCount - 1) / function.byteCount
        let nanoseconds: Int64 = function == .sha512 ? 500 : 400
        return PasswordHashWork(
            memoryByteCount: 0, time: .nanoseconds(nanoseconds * Int64(rounds) * Int64(blockCount)))
    }

    func verify(_ password: Secret, signerKey: Secret?) throws(CryptoError) -> Bool {
        OpenSSL.start
        return try withWipedScratch(byteCount: key.count) { (derived) throws(CryptoError) in
            let isDerived = password.withCharacters { characters, count in
                PKCS5_PBKDF2_HMAC(
                    characters, Int32(clamping: count), salt, Int32(clamping: salt.count), Int32(clamping: rounds),
                    function.type, Int32(clamping: derived.count), derived.octets) == 1
            }
            // All parameters were checked, so only the allocation can fail.
            guard isDerived else {
                ERR_clear_error()
                throw .outOfMemory
            }
            return constantTimeEqual([UInt8](derived), key)
        }
    }
}
