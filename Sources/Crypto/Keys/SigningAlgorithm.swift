public import Base

/// The algorithm that signs a JWT (RFC 7518, RFC 8037), by its `alg`.
public enum SigningAlgorithm: String, Sendable, CaseIterable {
    /// RSASSA-PKCS1-v1_5 with SHA-256: quick to verify, and expected by existing verifiers.
    case rs256 = "RS256"
    /// ECDSA on P-256 with SHA-256: quick to sign, small.
    case es256 = "ES256"
    /// Ed25519.
    case edDSA = "EdDSA"

    /// Finds an algorithm by its name, byte by byte: comparing `String`s normalises them, and takes minutes for a
    /// megabyte of combining marks.
    public init?(_ name: Text) {
        let found = Self.allCases.first { $0.rawValue.utf8.elementsEqual(name.bytes) }
        guard let found else { return nil }
        self = found
    }
}
