import Base
import Rules

/// Another write came between finding the account to sign in to and writing to it: the credential or its email got
/// another owner, the password's hash was replaced, or the provider's configuration changed.
struct AccountMoved: Error {
    /// The credential has to be proved again.
    var proofIsOld = false
}

/// Runs an attempt that finds its account before its transaction, and runs it again when it throws `AccountMoved`,
/// because another write came first. ACCOUNT_CHANGED after four attempts.
func startingOverWhenAccountMoved<Result>(_ attempt: () async throws -> Result) async throws -> Result {
    for _ in 0..<4 {
        do { return try await attempt() } catch is AccountMoved { continue }
    }
    throw Failure(.accountChanged, "The account changes all the time; try again.")
}

extension Account {
    /// Requires, in the transaction that acts on a right password, that the hash is still the one it was checked
    /// against.
    ///
    /// Throws `AccountMoved` when the hash differs from that of `verified`. That does not make the password wrong: a
    /// sign-in at the same time may have replaced an outdated hash by a new one of the same password. Only checking the
    /// password against the new hash tells that apart from a changed password.
    func requirePassword(of verified: Account) throws(AccountMoved) {
        guard passwordHash.bytes == verified.passwordHash.bytes else { throw AccountMoved(proofIsOld: true) }
    }
}
