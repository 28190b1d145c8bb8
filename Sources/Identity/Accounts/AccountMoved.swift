import Base
import Rules

/// Between looking which account a credential enters and writing, something else came first: the credential or its
/// email got another owner, or the password's hash was replaced.
struct AccountMoved: Error {
    /// What was proved has to be proved again.
    var proofIsOld = false
}

/// Runs what decides before its transaction which account it enters; it begins again where it throws `AccountMoved`,
/// because somebody else came first. ACCOUNT_CHANGED when that does not end.
func startingOverWhenAccountMoved<Result>(_ attempt: () async throws -> Result) async throws -> Result {
    for _ in 0..<4 {
        do { return try await attempt() } catch is AccountMoved { continue }
    }
    throw Failure(.accountChanged, "The account changes all the time; try again.")
}

extension Account {
    /// For the transaction that acts on a password which was found right for `verified`.
    ///
    /// Throws `AccountMoved` when the hash is another one by now. That does not make the password wrong: a sign-in at
    /// the same time may have replaced an outdated hash by a new one of the same password. Only checking the password
    /// against the new hash tells that apart from a changed password.
    func requirePassword(of verified: Account) throws(AccountMoved) {
        guard passwordHash.bytes == verified.passwordHash.bytes else { throw AccountMoved(proofIsOld: true) }
    }
}
