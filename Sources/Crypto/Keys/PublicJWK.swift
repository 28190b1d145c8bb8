public import Base

/// The public part of a key in the form of RFC 7517, which a key set publishes and from which a thumbprint is made.
public enum PublicJWK: Sendable, Equatable {
    /// Unsigned big-endian integers without leading zero.
    case rsa(modulus: [UInt8], exponent: [UInt8])
    /// 32 bytes each.
    case p256(x: [UInt8], y: [UInt8])
    /// 32 bytes.
    case ed25519(x: [UInt8])

    /// The required members and no others, in the order of their names: ready for a key set, and for RFC 7638.
    public var members: [(name: StaticString, value: Text)] {
        switch self {
        case .rsa(let modulus, let exponent):
            [("e", Self.encode(exponent)), ("kty", "RSA"), ("n", Self.encode(modulus))]
        case .p256(let x, let y):
            [("crv", "P-256"), ("kty", "EC"), ("x", Self.encode(x)), ("y", Self.encode(y))]
        case .ed25519(let x):
            [("crv", "Ed25519"), ("kty", "OKP"), ("x", Self.encode(x))]
        }
    }

    /// From the members of a JSON object: `member` gives the string of that name. `VerificationKey` checks whether the
    /// key is good. Throws `malformed`, `unsupported` (kind of key, curve).
    public init(member: (Text) -> Text?) throws(CryptoError) {
        func bytes(_ name: Text) throws(CryptoError) -> [UInt8] {
            guard let text = member(name), text.byteCount <= 2048, let bytes = Base64.url.decode(text.bytes) else {
                throw .malformed
            }
            return bytes
        }
        switch (member("kty"), member("crv")) {
        case ("RSA", _): self = .rsa(modulus: try bytes("n"), exponent: try bytes("e"))
        case ("EC", "P-256"): self = .p256(x: try bytes("x"), y: try bytes("y"))
        case ("OKP", "Ed25519"): self = .ed25519(x: try bytes("x"))
        case (nil, _): throw .malformed
        default: throw .unsupported
        }
    }

    public var algorithm: SigningAlgorithm {
        switch self {
        case .rsa: .rs256
        case .p256: .es256
        case .ed25519: .edDSA
        }
    }

    /// SHA-256 over the required members as compact JSON in the order of their names (RFC 7638 §3).
    public var thumbprint: [UInt8] {
        let pairs = members.map { "\"\($0.name)\":\"\($0.value)\"" }
        return Digest.sha256([UInt8](("{" + pairs.joined(separator: ",") + "}").utf8))
    }

    private static func encode(_ bytes: [UInt8]) -> Text { Text(unchecked: Base64.url.encode(bytes)) }
}
