public import Base

/// How a password was hashed, without the hash and its salt: the parameters that one system's hashes have in common.
public enum PasswordScheme: Sendable, Equatable {
    /// argon2 or bcrypt: each hash is a line of text that holds everything, including the salt. `.argon2id` stands for
    /// all variants of argon2.
    case text(PasswordHashKind)
    /// argon2 with tags and salts that are separate from everything else; `version` is 16 or 19.
    case argon2(
        Argon2Variant, version: Int, memoryKiB: Int, passes: Int, lanes: Int, associatedData: [UInt8])
    case firebaseScrypt(saltSeparator: [UInt8], rounds: Int, memoryCost: Int, signerKeyID: Text)
    case digest(HashFunction, rounds: Int, order: HashInputOrder, hashesHex: Bool)
    case hmac(HashFunction, order: HashInputOrder, signerKeyID: Text)
    case pbkdf2(HashFunction, rounds: Int)
    /// `costExponent` is log2 of N.
    case scrypt(costExponent: Int, blockSize: Int, lanes: Int)

    /// Throws the errors that a hash of this scheme would throw because of the scheme: `outOfRange`, `malformed`,
    /// `unsupported`.
    public func check() throws(CryptoError) {
        if case .text = self { return }
        // Every kind has hashes of this length.
        let byteCount =
            switch self {
            case .digest(let function, _, _, _), .hmac(let function, _, _): function.byteCount
            default: 32
            }
        _ = try PasswordCredential(
            self, hash: [UInt8](repeating: 0, count: byteCount), salt: [UInt8](repeating: 0, count: 8))
    }
}

extension PasswordCredential {
    /// A hash with its parts, as other systems export it. A digest or HMAC may also be hex digits, of either case.
    ///
    /// A signer key itself is given to `verify`, by its id (`[A-Za-z0-9_-]`, 1 to 64). Throws `malformed`,
    /// `outOfRange`, `unsupported`.
    public init(_ scheme: PasswordScheme, hash: [UInt8], salt: [UInt8]) throws(CryptoError) {
        switch scheme {
        case .text(let kind):
            guard let text = Text(validating: hash) else { throw .malformed }
            try self.init(stored: text)
            let isArgon2 = kind == .argon2id && (self.kind == .argon2i || self.kind == .argon2d)
            guard isArgon2 || self.kind == kind else { throw .unsupported }
        case .argon2(let variant, let version, let memoryKiB, let passes, let lanes, let data):
            // Before they are written out, because a request may hold megabytes of each.
            guard hash.count <= Argon2Hash.tagByteCountMax, salt.count <= Argon2Hash.saltByteCountMax,
                data.count <= Argon2Hash.associatedDataByteCountMax
            else { throw .outOfRange }
            // Stored as a line of text, as every argon2 is.
            let cost = PHCString.argon2Cost(variant, version, memoryKiB, passes, lanes, data)
            try self.init(stored: Text("\(cost)$\(PHCString.encode(salt))$\(PHCString.encode(hash))"))
        case .firebaseScrypt(let saltSeparator, let rounds, let memoryCost, let signerKeyID):
            self.init(
                try FirebaseScryptHash(
                    hash: hash, salt: salt, saltSeparator: saltSeparator, rounds: rounds, memoryCost: memoryCost,
                    signerKeyID: signerKeyID))
        case .digest(let function, let rounds, let order, let hashesHex):
            self.init(
                try DigestHash(
                    function: function, rounds: rounds, order: order, hashesHex: hashesHex, salt: salt, digest: hash))
        case .hmac(let function, let order, let signerKeyID):
            self.init(
                try HMACHash(function: function, order: order, salt: salt, signerKeyID: signerKeyID, tag: hash))
        case .pbkdf2(let function, let rounds):
            self.init(try PBKDF2Hash(function: function, rounds: rounds, salt: salt, key: hash))
        case .scrypt(let costExponent, let blockSize, let lanes):
            self.init(
                try ScryptHash(costExponent: costExponent, blockSize: blockSize, lanes: lanes, salt: salt, key: hash))
        }
    }

    /// The parts from which `init(_:hash:salt:)` makes such a credential.
    public var parts: (scheme: PasswordScheme, hash: [UInt8], salt: [UInt8]) {
        switch hash {
        case let hash as FirebaseScryptHash:
            let scheme = PasswordScheme.firebaseScrypt(
                saltSeparator: hash.saltSeparator, rounds: hash.rounds, memoryCost: hash.memoryCost,
                signerKeyID: hash.keyID)
            return (scheme, hash.hash, hash.salt)
        case let hash as DigestHash:
            let scheme = PasswordScheme.digest(
                hash.function, rounds: hash.rounds, order: hash.order, hashesHex: hash.hashesHex)
            return (scheme, hash.digest, hash.salt)
        case let hash as HMACHash:
            return (.hmac(hash.function, order: hash.order, signerKeyID: hash.keyID), hash.tag, hash.salt)
        case let hash as PBKDF2Hash: return (.pbkdf2(hash.function, rounds: hash.rounds), hash.key, hash.salt)
        case let hash as ScryptHash:
            let scheme = PasswordScheme.scrypt(
                costExponent: hash.costExponent, blockSize: hash.blockSize, lanes: hash.lanes)
            return (scheme, hash.key, hash.salt)
        default:
            return (.text(kind == .bcrypt ? .bcrypt : .argon2id), stored.bytes, [])
        }
    }
}
