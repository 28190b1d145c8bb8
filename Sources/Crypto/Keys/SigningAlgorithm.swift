/// How a JWT is signed (RFC 7518, RFC 8037), by its `alg`.
public enum SigningAlgorithm: String, Sendable, CaseIterable {
    /// RSASSA-PKCS1-v1_5 with SHA-256: quick to verify, what existing verifiers expect.
    case rs256 = "RS256"
    /// ECDSA on P-256 with SHA-256: quick to sign, small.
    case es256 = "ES256"
    /// Ed25519.
    case edDSA = "EdDSA"
}
