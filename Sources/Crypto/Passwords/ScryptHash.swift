import Base
import COpenSSL

/// scrypt as in RFC 7914. The derived key is as long as the key in the hash.
struct ScryptHash: PasswordHash {
    /// Log2 of N.
    let costExponent: Int
    let blockSize: Int
    let lanes: Int
    let salt: [UInt8]
    let key: [UInt8]

    static let id = "scrypt"
    static let costExponentRange = 1...20
    static let blockSizeRange = 1...32
    static let lanesRange = 1...64
    static let memoryByteCountMax = 256 << 20
    /// The limit for OpenSSL. Its own needs beside the hash's memory are far less than the difference.
    private static let librarysMemoryMax: UInt64 = 512 << 20

    init(costExponent: Int, blockSize: Int, lanes: Int, salt: [UInt8], key: [UInt8]) throws(CryptoError) {
        guard Self.costExponentRange.contains(costExponent), Self.blockSizeRange.contains(blockSize),
            Self.lanesRange.contains(lanes), (128 * blockSize) << costExponent <= Self.memoryByteCountMax,
            // RFC 7914, 2: N is below 2^(16r).
            costExponent < 16 * blockSize, salt.count <= DigestHash.saltByteCountMax, (16...128).contains(key.count)
        else { throw .outOfRange }
        self.costExponent = costExponent
        self.blockSize = blockSize
        self.lanes = lanes
        self.salt = salt
        self.key = key
    }

    /// `$scrypt$ln=14,r=8,p=1$salt$key`
    init?(_ string: PHCString) throws(CryptoError) {
        guard string.id == Self.id else { return nil }
        guard string.fields.count == 4,
            let parameters = PHCString.parameters(string.fields[1], named: ["ln", "r", "p"]),
            let salt = PHCString.decode(string.fields[2]), let key = PHCString.decode(string.fields[3])
        else { throw .malformed }
        try self.init(
            costExponent: parameters[0], blockSize: parameters[1], lanes: parameters[2], salt: salt, key: key)
    }

    var kind: PasswordHashKind { .scrypt }
    var cost: String { "$\(Self.id)$ln=\(costExponent),r=\(blockSize),p=\(lanes)" }
    var stored: String { "\(cost)$\(PHCString.encode(salt))$\(PHCString.encode(key))" }

    private var memoryByteCount: Int { (128 * blockSize) << costExponent }

    /// Each lane fills the memory and reads it once more: 3 ns for a byte.
    var work: PasswordHashWork {
        PasswordHashWork(
            memoryByteCount: memoryByteCount + 128 * blockSize * lanes,
            time: .nanoseconds(Int64(memoryByteCount) * Int64(lanes) * 3))
    }

    func verify(_ password: Secret, signerKey: Secret?) throws(CryptoError) -> Bool {
        OpenSSL.start
        return try withWipedScratch(byteCount: key.count) { (derived) throws(CryptoError) in
            let isDerived = password.withCharacters { characters, count in
                EVP_PBE_scrypt(
                    characters, count, salt, salt.count, 1 << UInt64(clamping: costExponent),
                    UInt64(clamping: blockSize), UInt64(clamping: lanes), Self.librarysMemoryMax, derived.octets,
                    derived.count) == 1
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
