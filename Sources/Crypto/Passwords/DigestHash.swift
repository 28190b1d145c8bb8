import Base

/// A password hashed with a fast function, once or some thousands of times: `md5`, `sha1`, `sha256`, `sha512`.
struct DigestHash: PasswordHash {
    let function: HashFunction
    /// 0 counts as 1.
    let rounds: Int
    let order: HashInputOrder
    /// Whether each further round hashes the digest's lowercase hex digits, and not its bytes.
    let hashesHex: Bool
    let salt: [UInt8]
    let digest: [UInt8]

    static let roundsRange = 0...8_192
    static let saltByteCountMax = 128

    /// `digest` is given as bytes or as hex digits; its length tells which.
    init(
        function: HashFunction, rounds: Int, order: HashInputOrder, hashesHex: Bool, salt: [UInt8], digest: [UInt8]
    ) throws(CryptoError) {
        guard Self.roundsRange.contains(rounds), salt.count <= Self.saltByteCountMax else { throw .outOfRange }
        self.function = function
        self.rounds = rounds
        self.order = order
        self.hashesHex = hashesHex
        self.salt = salt
        self.digest = try function.digest(written: digest)
    }

    /// `$sha256$r=1,p=0,h=0$salt$digest`; p = 1: the password first, h = 1: rounds over hex digits.
    init?(_ string: PHCString) throws(CryptoError) {
        guard let function = HashFunction(rawValue: string.id) else { return nil }
        guard string.fields.count == 4,
            let parameters = PHCString.parameters(string.fields[1], named: ["r", "p", "h"]),
            parameters[1] <= 1, parameters[2] <= 1, let salt = PHCString.decode(string.fields[2]),
            let digest = PHCString.decode(string.fields[3]), digest.count == function.byteCount
        else { throw .malformed }
        try self.init(
            function: function, rounds: parameters[0], order: parameters[1] == 1 ? .passwordFirst : .saltFirst,
            hashesHex: parameters[2] == 1, salt: salt, digest: digest)
    }

    var kind: PasswordHashKind {
        switch function {
        case .md5: .md5
        case .sha1: .sha1
        case .sha256: .sha256
        case .sha512: .sha512
        }
    }

    var cost: String {
        "$\(function.rawValue)$r=\(rounds),p=\(order == .passwordFirst ? 1 : 0),h=\(hashesHex ? 1 : 0)"
    }
    var stored: String { "\(cost)$\(PHCString.encode(salt))$\(PHCString.encode(digest))" }

    /// Half a microsecond for a round, ten for everything else.
    var work: PasswordHashWork {
        PasswordHashWork(memoryByteCount: 0, time: .nanoseconds(10_000 + 500 * Int64(rounds)))
    }

    func verify(_ password: Secret, signerKey: Secret?) throws(CryptoError) -> Bool {
        let inputByteCount = salt.count + password.byteCount
        // Twice the greatest digest, for its hex digits.
        return try withWipedScratch(byteCount: max(128, inputByteCount)) { (scratch) throws(CryptoError) in
            password.join(salt, order, into: scratch)
            try function.digest(UnsafeRawBufferPointer(rebasing: scratch[..<inputByteCount]), into: scratch)
            for _ in stride(from: 1, to: rounds, by: 1) {
                let count = hashesHex ? scratch.expandToHex(function.byteCount) : function.byteCount
                try function.digest(UnsafeRawBufferPointer(rebasing: scratch[..<count]), into: scratch)
            }
            return constantTimeEqual([UInt8](scratch[..<function.byteCount]), digest)
        }
    }
}

extension HashFunction {
    /// A digest that was written as its bytes or as hex digits of either case.
    func digest(written: [UInt8]) throws(CryptoError) -> [UInt8] {
        if written.count == byteCount { return written }
        guard written.count == 2 * byteCount, let digest = Hex.decode(written) else {
            throw .malformed
        }
        return digest
    }
}

extension Secret {
    /// Writes the password and the salt to the beginning of `output`.
    func join(_ salt: [UInt8], _ order: HashInputOrder, into output: UnsafeMutableRawBufferPointer) {
        withBytes { password in
            let (passwordStart, saltStart) = order == .saltFirst ? (salt.count, 0) : (0, password.count)
            UnsafeMutableRawBufferPointer(rebasing: output[passwordStart...]).copyBytes(from: password)
            UnsafeMutableRawBufferPointer(rebasing: output[saltStart...]).copyBytes(from: salt)
        }
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Replaces the first `count` bytes by their lowercase hex digits, and says how many these are.
    fileprivate func expandToHex(_ count: Int) -> Int {
        let digits: StaticString = "0123456789abcdef"
        for index in (0..<count).reversed() {
            let byte = self[index]
            self[2 * index] = digits.utf8Start[Int(byte >> 4)]
            self[2 * index + 1] = digits.utf8Start[Int(byte & 15)]
        }
        return 2 * count
    }
}
