import Base

/// Between looking which account a credential enters and writing, the credential or its email got another owner.
struct AccountMoved: Error {}

/// Runs a sign-in that decides before its transaction which account it enters; it begins again where it throws
/// `AccountMoved`, because somebody else came first. ACCOUNT_CHANGED when that does not end.
func startingOverWhenAccountMoved<Result>(_ attempt: () async throws -> Result) async throws -> Result {
    for _ in 0..<4 {
        do { return try await attempt() } catch is AccountMoved { continue }
    }
    throw Failure(.aborted, "ACCOUNT_CHANGED", "The account changes all the time; try again.")
}
