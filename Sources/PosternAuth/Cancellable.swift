/// Runs the body of a public method. A task that was cancelled gets Swift's own CancellationError, as from every other
/// asynchronous call; everything else is an AuthError.
func cancellable<Result>(_ body: () async throws(AuthError) -> Result) async throws -> Result {
    do throws(AuthError) {
        return try await body()
    } catch {
        if error.isCancellation { throw CancellationError() }
        throw error
    }
}
