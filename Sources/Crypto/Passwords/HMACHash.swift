import Base

/// A password's HMAC under a key of the source system: `hmac-md5`, `hmac-sha1`, `hmac-sha256`, `hmac-sha512`.
struct HMACHash: PasswordHash {
    let function: HashFunction
    let order: HashInputOrder
    let salt: [UInt8]
    let keyID: Text
    let tag: [UInt8]

    private static let idPrefix = "hmac-"

    /// `tag` is given as bytes or as hex digits; its length tells which.
    init(
        function: HashFunction, order: HashInputOrder, salt: [UInt8], signerKeyID: Text, tag: [UInt8]
    ) throws(CryptoError) {
        guard salt.count <= DigestHash.saltByteCountMax else { throw .outOfRange }
        self.function = function
        self.order = order
        self.salt = salt
        self.keyID = try PHCString.keyID(signerKeyID)
        self.tag = try function.digest(written: tag)
    }

    /// `$hmac-sha256$p=1$salt$signer-key-id$tag`; p = 1: the password first.
    init?(_ string: PHCString) throws(CryptoError) {
        // Not bytes: an id that is not ASCII is no id of ours either way.
        guard string.id.hasPrefix(Self.idPrefix),
            let function = HashFunction(rawValue: String(string.id.dropFirst(Self.idPrefix.count)))
        else { return nil }
        guard string.fields.count == 5, let parameters = PHCString.parameters(string.fields[1], named: ["p"]),
            parameters[0] <= 1, let salt = PHCString.decode(string.fields[2]),
            let tag = PHCString.decode(string.fields[4]), tag.count == function.byteCount
        else { throw .malformed }
        try self.init(
            function: function, order: parameters[0] == 1 ? .passwordFirst : .saltFirst, salt: salt,
            signerKeyID: Text(unchecked: [UInt8](string.fields[3])), tag: tag)
    }

    var kind: PasswordHashKind {
        switch function {
        case .md5: .hmacMD5
        case .sha1: .hmacSHA1
        case .sha256: .hmacSHA256
        case .sha512: .hmacSHA512
        }
    }

    var signerKeyID: Text? { keyID }
    var cost: String { "$\(Self.idPrefix)\(function.rawValue)$p=\(order == .passwordFirst ? 1 : 0)" }
    var stored: String { "\(cost)$\(PHCString.encode(salt))$\(keyID)$\(PHCString.encode(tag))" }
    var work: PasswordHashWork { PasswordHashWork(memoryByteCount: 0, time: .microseconds(10)) }

    func verify(_ password: Secret, signerKey: Secret?) throws(CryptoError) -> Bool {
        guard let signerKey else { throw .unknownKey(id: keyID) }
        let inputByteCount = salt.count + password.byteCount
        return try withWipedScratch(byteCount: max(1, inputByteCount)) { (scratch) throws(CryptoError) in
            password.join(salt, order, into: scratch)
            let input = UnsafeRawBufferPointer(rebasing: scratch[..<inputByteCount])
            return constantTimeEqual(try function.hmac(of: input, key: signerKey), tag)
        }
    }
}
