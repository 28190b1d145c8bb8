import Base
import CCrypt
import Glibc

/// An imported bcrypt hash: `$2a$`, `$2b$` or `$2y$`, cost 4 to 14 (crypt(5)).
struct BcryptHash: Sendable {
    /// 60 characters: `$2b$10$`, 22 of salt, 31 of hash.
    let stored: String
    /// `$2b$10`, also for a hash with one of the other two prefixes.
    var cost: String { "$2b$" + stored.dropFirst(4).prefix(2) }
    /// Log2 of the number of key schedule set-ups.
    let rounds: Int
    private static let byteCount = 60
    private static let digestStart = 29
    private static let passwordByteCountMax = 72

    init(_ text: Text) throws(CryptoError) {
        let bytes = text.bytes
        guard bytes.count == Self.byteCount else { throw .malformed }
        let prefix = String(decoding: bytes[..<4], as: UTF8.self)
        guard ["$2a$", "$2b$", "$2y$"].contains(prefix) else { throw .unsupported }
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard digits.contains(bytes[4]), digits.contains(bytes[5]), bytes[6] == UInt8(ascii: "$"),
            bytes[7...].allSatisfy({ Self.value(of: $0) != nil }),
            // 184 bits in 31 characters: two bits of the last one are always zero.
            let last = bytes.last.flatMap(Self.value), last & 3 == 0
        else { throw .malformed }
        let cost = Int(bytes[4] - digits.lowerBound) * 10 + Int(bytes[5] - digits.lowerBound)
        guard (4...14).contains(cost) else { throw .outOfRange }
        self.stored = text.string
        self.rounds = cost
    }

    /// False for a password above 72 bytes, because bcrypt would see only its beginning, and for a password with a NUL.
    func verify(_ password: Secret) throws(CryptoError) -> Bool {
        let isUsable = password.withBytes { $0.count <= Self.passwordByteCountMax && !$0.contains(0) }
        guard isUsable else { return false }
        // 32 KiB: on the heap, because the caller's stack may be small. It holds the password and the key schedule.
        let size = MemoryLayout<crypt_data>.size
        guard let data = calloc(1, size) else { throw .outOfMemory }
        defer {
            explicit_bzero(data, size)
            free(data)
        }
        return withWipedScratch(byteCount: Self.passwordByteCountMax + 1) { characters in
            characters.initializeMemory(as: UInt8.self, repeating: 0)
            password.withBytes { characters.copyMemory(from: $0) }
            let phrase = characters.baseAddress!.assumingMemoryBound(to: CChar.self)
            guard let output = crypt_rn(phrase, stored, data, Int32(size)) else { return false }
            // The salt's last character has unused bits which some writers set and crypt(3) clears: compare the digest.
            let computed = UnsafeRawBufferPointer(start: output, count: strnlen(output, Self.byteCount))
            let expected = [UInt8](stored.utf8)[Self.digestStart...]
            guard computed.count == Self.byteCount else { return false }
            return constantTimeEqual([UInt8](computed[Self.digestStart...]), [UInt8](expected))
        }
    }

    /// bcrypt's own base64: `./A-Za-z0-9`.
    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "."): 0
        case UInt8(ascii: "/"): 1
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A") + 2
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 28
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 54
        default: nil
        }
    }
}
