import Base
import Messages
import PosternClient

/// The tenant and the server that `Auth` and its users call: the stubs, the clocks, and the fields that every request
/// has.
struct Backend: Sendable {
    let accounts: AccountsClient
    let tokens: TokensClient
    let sessions: SessionsClient
    var tenantID: Text
    let clock: AuthClock
    let random: RandomSource
    let deviceName: Text
    let endUserIP: Text
    let language: Language
    let device: KnownDevice
    /// The server and the credential, by which `Auth` tells whether a user is of the same server.
    var server: AuthConfiguration.Server?

    /// Runs calls and translates every failure to an `AuthError`. `attempted` is the credential that the calls present.
    func call<Result>(
        attempting attempted: AuthCredential? = nil, _ body: () async throws -> Result
    ) async throws(AuthError) -> Result {
        do {
            return try await body()
        } catch let failure as Failure {
            throw AuthError(failure, attempted: attempted)
        } catch {
            // Closures without a signature throw `any Error`; the closures that callers pass throw only the stubs'
            // errors.
            preconditionFailure("a call failed with \(error)")
        }
    }

    /// Reads an answer, and remembers its device token.
    func answer(
        _ account: Messages.User?, _ tokens: TokenPair?, deviceToken: Text, isNewUser: Bool = false,
        provider: ProviderInfo? = nil
    ) throws(AuthError) -> Answer {
        device.remember(deviceToken)
        return try Answer(account, tokens, isNewUser: isNewUser, provider: provider)
    }

    /// Runs a call that must be done only once, even if its answer is lost. The server recognises it by a key:
    /// `attempt` in hexadecimal digits.
    ///
    /// A server keeps a limited number of keys per end user. Above the limit, the call is sent without a key.
    func callOnce<Result>(
        _ attempt: [UInt8], _ body: (CallOptions) async throws -> Result
    ) async throws(AuthError) -> Result {
        try await once(attempt) { options throws(AuthError) in try await call { try await body(options) } }
    }

    /// Does the same as `callOnce` for a body that translates failures itself.
    func once<Result>(
        _ attempt: [UInt8], _ body: (CallOptions) async throws(AuthError) -> Result
    ) async throws(AuthError) -> Result {
        do throws(AuthError) {
            return try await body(CallOptions(idempotencyKey: Hex.encode(attempt)))
        } catch {
            guard error.is(.tooManyIdempotencyKeys) else { throw error }
            return try await body(CallOptions())
        }
    }

    /// Tells the server to end a session, as best effort. If the call fails, the session ends after it was unused for
    /// too long.
    func endSession(of refreshToken: Text) async {
        let request = SessionsSignOutRequest(tenantID: tenantID, refreshToken: refreshToken)
        _ = try? await sessions.signOut(request)
    }

    /// Converts what a person typed. A string with a NUL throws `code`.
    func text(_ string: String, _ code: AuthErrorCode = .internalError) throws(AuthError) -> Text {
        guard let text = Text(validating: [UInt8](string.utf8)) else { throw .holdsNUL(code) }
        return text
    }

    func secret(_ string: String, _ code: AuthErrorCode) throws(AuthError) -> Secret {
        try secret(Secret(string), code)
    }

    func secret(_ secret: Secret, _ code: AuthErrorCode) throws(AuthError) -> Secret {
        guard secret.withBytes({ !$0.contains(0) }) else { throw .holdsNUL(code) }
        return secret
    }
}

extension AuthError {
    fileprivate static func holdsNUL(_ code: AuthErrorCode) -> AuthError {
        AuthError(.invalidText, as: code, "A text must not hold a NUL character.")
    }
}

extension RandomSource {
    /// getrandom(2), through Swift's own generator.
    static let operatingSystem = RandomSource { buffer in
        var generator = SystemRandomNumberGenerator()
        for index in buffer.indices { buffer[index] = generator.next() }
    }
}
