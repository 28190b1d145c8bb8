public import Base

/// The reason why something from outside was not accepted, or could not be processed. Holds no secret.
public enum CryptoError: Error, Sendable, Equatable {
    /// The input does not have the format that it should have.
    case malformed
    /// The input is well formed, but its algorithm, curve or version is not supported.
    case unsupported
    /// A parameter (cost, length, key size, exponent) is outside of what is accepted.
    case outOfRange
    /// The key must not be used: known-weak generator, parts that do not fit each other.
    case unsoundKey
    /// The operation needs a key that was not given: a signer key, or the master key of a sealed value.
    case unknownKey(id: Text)
    /// The input was changed, or belongs somewhere else.
    case notAuthentic
    /// There is not enough memory now, so the password could not be checked.
    case outOfMemory
}
