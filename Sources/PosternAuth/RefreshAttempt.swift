import Base

/// A refresh that has begun. The same 16 bytes get the same answer, however often it was lost.
struct RefreshAttempt: Sendable, Equatable {
    static let idByteCount = 16

    let id: [UInt8]
    /// The one token that the attempt is for.
    let refreshToken: Text
}

extension Backend {
    /// The id of an attempt to refresh, to sign in or to change the account.
    func newAttemptID() -> [UInt8] { random.bytes(RefreshAttempt.idByteCount) }
}
