import Base
import Identity
import Messages

/// postern.v1.Accounts/SignInWithPassword
enum AccountsSignInWithPassword: SlowMethod {
    static func handle(
        _ request: AccountsSignInWithPasswordRequest, _ call: Call
    ) async throws -> AccountsSignInWithPasswordResponse {
        guard call.settings.allowsPasswordSignup else { throw Failure.passwordLoginDisabled }
        if request.email.isEmpty { throw Failure.missingEmail }
        let email = try Values.email(request.email, limits: call.limits)
        if request.password.isEmpty { throw Failure.missingPassword }
        let signedIn = try await throttled(email, request, call) {
            try await signIn(email, request, call)
        }
        return AccountsSignInWithPasswordResponse(user: signedIn.user, tokens: signedIn.tokens)
    }

    /// Charges the attempt before the password is looked at, and gives the charge back unless it was wrong.
    private static func throttled(
        _ email: Email, _ request: AccountsSignInWithPasswordRequest, _ call: Call,
        _ body: () async throws -> SignedIn
    ) async throws -> SignedIn {
        if call.settings.isSynthetic { return try await body() }
        let tenant = call.project.tenants.tenant(call.settings)
        let subject = try await tenant.admitPasswordAttempt(
            email: email, address: call.endUserAddress(request.endUserIP))
        do {
            let signedIn = try await body()
            await tenant.passwordSucceeded(subject)
            return signedIn
        } catch let failure as Failure where Self.wrongPasswordReasons.contains(failure.reason) {
            throw failure
        } catch {
            await tenant.passwordNotTried(subject)
            throw error
        }
    }

    private static let wrongPasswordReasons: Set<String> = [
        "INVALID_LOGIN_CREDENTIALS", "EMAIL_NOT_FOUND", "INVALID_PASSWORD",
    ]

    private static func signIn(
        _ email: Email, _ request: AccountsSignInWithPasswordRequest, _ call: Call
    ) async throws -> SignedIn {
        let passwords = call.project.passwords
        let isPrivate = call.settings.hasEmailPrivacy
        guard let account = try call.project.account(email: email, tenantID: call.tenantID) else {
            try await passwords.verifyDecoy(
                request.password, email: email, settings: call.settings, deadline: call.deadline)
            throw isPrivate ? Failure.invalidLoginCredentials : Failure.emailNotFound
        }
        guard account.hasPassword else {
            try await passwords.verifyDecoy(
                request.password, email: email, settings: call.settings, deadline: call.deadline)
            throw isPrivate ? Failure.invalidLoginCredentials : Failure.invalidPassword
        }
        let outcome = try await passwords.verify(
            request.password, stored: account.passwordHash, settings: call.settings, deadline: call.deadline)
        let newHash: Text?
        switch outcome {
        case .wrong: throw isPrivate ? Failure.invalidLoginCredentials : Failure.invalidPassword
        case .right: newHash = nil
        case .rightRehashed(let hash): newHash = hash
        }
        // Only whoever knows the password learns that the account is disabled.
        if account.user.disabled { throw Failure.userDisabled }
        return try await call.userSession(account.user.uid).signInWithPassword(
            verified: account, newHash: newHash, settings: call.settings, origin: call.origin, deadline: call.deadline)
    }
}
