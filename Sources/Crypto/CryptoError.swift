public import Base

/// Why something from outside was not accepted, or could not be worked on. Holds no secret.
public enum CryptoError: Error, Sendable, Equatable {
    /// Not in the format it should be in.
    case malformed
    /// Well formed, but of an algorithm, curve or version that is not supported.
    case unsupported
    /// A parameter (cost, length, key size, exponent) is outside of what is accepted.
    case outOfRange
    /// A key that must not be used: known-weak generator, parts that do not fit each other.
    case unsoundKey
    /// Needs a key that was not given: a signer key, or the master key something was sealed under.
    case unknownKey(id: Text)
    /// Was changed, or belongs somewhere else.
    case notAuthentic
    /// Not enough memory now; nothing can be said about the password.
    case outOfMemory
}
