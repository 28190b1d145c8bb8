import Base
import Crypto
import Messages

// Conversions between the hash specs of an import and the schemes of our checks.

extension PasswordScheme {
    private static let signerKeyByteCounts = 1...256

    /// `keyID` returns the id by which a signer key is kept. Nil for a spec without an algorithm. INVALID_HASH_SPEC.
    init?(_ spec: PasswordHashSpec, keyID: (Secret) throws -> Text) throws {
        let field: String
        switch spec.algorithm {
        case nil: return nil
        case .argon2id: (self, field) = (.text(.argon2id), "argon2id")
        case .bcrypt: (self, field) = (.text(.bcrypt), "bcrypt")
        case .argon2(let spec): (self, field) = (try PasswordScheme(spec), "argon2")
        case .firebaseScrypt(let spec):
            field = "firebase_scrypt"
            self = .firebaseScrypt(
                saltSeparator: spec.saltSeparator, rounds: Int(spec.rounds), memoryCost: Int(spec.memoryCost),
                signerKeyID: try keyID(Self.checked(signerKey: spec.signerKey)))
        case .digest(let spec):
            field = "digest"
            self = .digest(
                try HashFunction(spec.function), rounds: Int(spec.rounds),
                order: HashInputOrder(spec.order) ?? .saltFirst, hashesHex: spec.roundsOverHex)
        case .hmac(let spec):
            field = "hmac"
            self = .hmac(
                try HashFunction(spec.function), order: HashInputOrder(spec.order) ?? .passwordFirst,
                signerKeyID: try keyID(Self.checked(signerKey: spec.signerKey)))
        case .pbkdf2(let spec):
            field = "pbkdf2"
            self = .pbkdf2(try HashFunction(spec.function), rounds: Int(spec.rounds))
        case .scrypt(let spec):
            field = "scrypt"
            guard spec.memoryCost.nonzeroBitCount == 1, spec.memoryCost > 1 else {
                throw Failure.invalid(.invalidHashSpec, field: "spec.scrypt", "memory_cost must be a power of two")
            }
            self = .scrypt(
                costExponent: spec.memoryCost.trailingZeroBitCount, blockSize: Int(spec.blockSize),
                lanes: Int(spec.parallelization))
        }
        do throws(CryptoError) { try check() } catch {
            throw Failure.invalid(
                .invalidHashSpec, field: "spec.\(field)", "has a number outside of its range, or a function it has not")
        }
    }

    /// INVALID_HASH_SPEC for a signer key of an impossible length.
    private static func checked(signerKey: Secret) throws(Failure) -> Secret {
        guard signerKeyByteCounts.contains(signerKey.byteCount) else {
            throw .invalid(.invalidHashSpec, field: "spec", "signer_key must have 1 to 256 bytes")
        }
        return signerKey
    }

    private init(_ spec: Argon2Spec) throws(Failure) {
        let variant: Crypto.Argon2Variant
        switch spec.variant {
        case .d: variant = .d
        case .i: variant = .i
        case .id: variant = .id
        case .unspecified:
            throw .invalid(.invalidHashSpec, field: "spec.argon2", "needs a variant that is known")
        }
        self = .argon2(
            variant, version: spec.version == 0 ? 19 : Int(spec.version), memoryKiB: Int(spec.memoryKib),
            passes: Int(spec.iterations), lanes: Int(spec.parallelism), associatedData: spec.associatedData)
    }

    /// `signerKey` returns the key of an id.
    func spec(signerKey: (Text) throws -> Secret) throws -> PasswordHashSpec {
        let algorithm: PasswordHashSpec.Algorithm =
            switch self {
            case .text(.bcrypt): .bcrypt(BcryptSpec())
            case .text: .argon2id(Argon2idSpec())
            case .argon2(let variant, let version, let memoryKiB, let passes, let lanes, let data):
                .argon2(
                    Argon2Spec(
                        variant: Messages.Argon2Variant(variant), version: Int32(clamping: version),
                        memoryKib: Int32(clamping: memoryKiB), iterations: Int32(clamping: passes),
                        parallelism: Int32(clamping: lanes), associatedData: data))
            case .firebaseScrypt(let saltSeparator, let rounds, let memoryCost, let id):
                .firebaseScrypt(
                    FirebaseScryptSpec(
                        signerKey: try signerKey(id), saltSeparator: saltSeparator, rounds: Int32(clamping: rounds),
                        memoryCost: Int32(clamping: memoryCost)))
            case .digest(let function, let rounds, let order, let hashesHex):
                .digest(
                    DigestSpec(
                        function: PasswordHashFunction(function), rounds: Int32(clamping: rounds),
                        order: PasswordHashOrder(order), roundsOverHex: hashesHex))
            case .hmac(let function, let order, let id):
                .hmac(
                    HmacSpec(
                        function: PasswordHashFunction(function), signerKey: try signerKey(id),
                        order: PasswordHashOrder(order)))
            case .pbkdf2(let function, let rounds):
                .pbkdf2(Pbkdf2Spec(function: PasswordHashFunction(function), rounds: Int32(clamping: rounds)))
            case .scrypt(let costExponent, let blockSize, let lanes):
                .scrypt(
                    ScryptSpec(
                        memoryCost: 1 << Int32(clamping: costExponent), blockSize: Int32(clamping: blockSize),
                        parallelization: Int32(clamping: lanes)))
            }
        return PasswordHashSpec(algorithm: algorithm)
    }
}

extension Messages.Argon2Variant {
    fileprivate init(_ variant: Crypto.Argon2Variant) {
        switch variant {
        case .d: self = .d
        case .i: self = .i
        case .id: self = .id
        }
    }
}

extension HashFunction {
    fileprivate init(_ function: PasswordHashFunction) throws(Failure) {
        switch function {
        case .md5: self = .md5
        case .sha1: self = .sha1
        case .sha256: self = .sha256
        case .sha512: self = .sha512
        default: throw .invalid(.invalidHashSpec, field: "spec", "needs a function that is known")
        }
    }
}

extension PasswordHashFunction {
    fileprivate init(_ function: HashFunction) {
        switch function {
        case .md5: self = .md5
        case .sha1: self = .sha1
        case .sha256: self = .sha256
        case .sha512: self = .sha512
        }
    }
}

extension HashInputOrder {
    fileprivate init?(_ order: PasswordHashOrder) {
        switch order {
        case .saltFirst: self = .saltFirst
        case .passwordFirst: self = .passwordFirst
        default: return nil
        }
    }
}

extension PasswordHashOrder {
    fileprivate init(_ order: HashInputOrder) { self = order == .saltFirst ? .saltFirst : .passwordFirst }
}
