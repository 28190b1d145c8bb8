import Base
import Identity
import Messages
import Store
import Tokens

/// postern.v1.Accounts/SignUp
enum AccountsSignUp: SlowMethod {
    static func handle(_ request: AccountsSignUpRequest, _ call: Call) async throws -> AccountsSignUpResponse {
        if !request.idToken.isEmpty { return try await linkPassword(request, call) }
        let isAnonymous = request.email.isEmpty && request.password.isEmpty
        if isAnonymous {
            guard call.settings.allowsAnonymousUsers else { throw Failure.anonymousNotAllowed }
        } else {
            if request.email.isEmpty { throw Failure.missingEmail }
            if request.password.isEmpty { throw Failure.missingPassword }
            guard call.settings.allowsPasswordSignup else { throw Failure.operationNotAllowed }
        }
        let email = Email(request.email, form: .toFind, limits: call.limits)
        if let toggle = SelfService.refusalOfSignUp(call.settings) {
            throw await call.refusal(by: toggle, email: email)
        }
        let origin = try call.origin(deviceName: request.deviceName, endUserIP: request.endUserIP)
        if isAnonymous, !call.settings.isSynthetic, try !call.project.isRepeated(origin) {
            try await call.project.tenants.tenant(call.settings).admitAnonymousSignUp(
                address: call.endUserAddress(request.endUserIP), settings: call.settings)
        }
        let uid = call.project.resources.random.alphanumeric(28)
        let now = call.now
        var account = Account(user: User(tenantID: call.tenantID, uid: uid))
        account.user.createdAtMicros = now.microseconds
        account.user.lastSignInAtMicros = now.microseconds
        account.user.tokensValidAfterMicros = now.microseconds
        if !isAnonymous {
            let email = try Values.email(request.email, form: call.settings.emailForm, limits: call.limits)
            try call.checkNewPassword(request.password)
            try Values.checkDisplayName(request.displayName, limits: call.limits)
            try await refuseIfTaken(email, request, call)
            account.user.email = email.address
            account.user.displayName = request.displayName
            account.passwordHash = try await call.project.passwords.hash(
                request.password, settings: call.settings, deadline: call.deadline)
            account.passwordUpdatedAt = now
            account.deriveProviders()
        }
        let signedIn = try await call.userSession(uid).signUp(
            account, signInProvider: isAnonymous ? "anonymous" : "password", settings: call.settings,
            origin: origin, deadline: call.deadline)
        return AccountsSignUpResponse(user: signedIn.user, tokens: signedIn.tokens)
    }

    static func endUser(of request: AccountsSignUpRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken, email: request.email, endUserIP: request.endUserIP)
    }

    /// Gives the signed-in user an email and a password; an anonymous one becomes a known one with the same uid.
    private static func linkPassword(_ request: AccountsSignUpRequest, _ call: Call) async throws
        -> AccountsSignUpResponse
    {
        if let again = try await call.repeatedChange(idToken: request.idToken) {
            return AccountsSignUpResponse(user: again.user, tokens: again.tokens)
        }
        let verified = try call.verifiedUser(idToken: request.idToken)
        if request.email.isEmpty { throw Failure.missingEmail }
        if request.password.isEmpty { throw Failure.missingPassword }
        guard call.settings.allowsPasswordSignup else { throw Failure.operationNotAllowed }
        let email = try Values.email(request.email, form: call.settings.emailForm, limits: call.limits)
        try call.checkNewPassword(request.password)
        try verified.requireRecentLogin(now: call.now)
        let user = verified.account.user
        // Refused before the hash is paid for; the transaction looks again.
        _ = try verified.account.linkingPassword(.empty, email: email, now: call.now)
        if try call.project.isTaken(email, tenantID: call.tenantID), Email(stored: user.email) != email {
            try await chargeProbe(email, request, call)
        }
        let hash = try await call.project.passwords.hash(
            request.password, settings: call.settings, deadline: call.deadline)
        let now = call.now
        let signedIn = try await call.userSession(user.uid).change(
            by: verified.token, provingAs: verified.isAnonymous ? SessionStart("password") : nil,
            settings: call.settings, origin: call.origin, deadline: call.deadline
        ) { transaction, current in
            let linked = try current.linkingPassword(hash, email: email, now: now)
            let owner = try transaction.reading.uid(ofEmail: email, tenantID: current.user.tenantID)
            guard owner == nil || owner == current.user.uid else {
                throw Failure.credentialInUse(detail: "EMAIL_EXISTS")
            }
            return AccountEffect(linked, kind: .providerLinked, detail: "password")
        }
        return AccountsSignUpResponse(user: signedIn.user, tokens: signedIn.tokens)
    }

    /// Says EMAIL_EXISTS before the hash is paid for; the transaction that creates the account checks again. Answers
    /// that tell of an account are throttled, so that a list of addresses cannot be tried out.
    private static func refuseIfTaken(_ email: Email, _ request: AccountsSignUpRequest, _ call: Call) async throws {
        // In this order: who finds the email taken by this very request finds its record as well.
        guard try call.project.isTaken(email, tenantID: call.tenantID), try !call.project.isRepeated(call.origin) else {
            return
        }
        try await chargeProbe(email, request, call)
        throw Failure.emailExists
    }

    private static func chargeProbe(_ email: Email, _ request: AccountsSignUpRequest, _ call: Call) async throws {
        if call.settings.isSynthetic { return }
        try await call.project.tenants.tenant(call.settings).chargeSignUpProbe(
            email: email, address: call.endUserAddress(request.endUserIP))
    }
}
