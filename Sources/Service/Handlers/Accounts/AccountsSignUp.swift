import Base
import Identity
import Messages
import Store
import Tokens

/// postern.v1.Accounts/SignUp
enum AccountsSignUp: SlowMethod {
    static func handle(_ request: AccountsSignUpRequest, _ call: Call) async throws -> AccountsSignUpResponse {
        let address = try call.endUserAddress(request.endUserIP)
        if !request.idToken.isEmpty { return try await linkPassword(request, address, call) }
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
        let origin = try call.origin(deviceName: request.deviceName, address: address)
        if isAnonymous, !call.settings.isSynthetic, try !call.project.isRepeated(origin) {
            try await call.project.tenants.tenant(call.settings).admitAnonymousSignUp(
                address: address, settings: call.settings)
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
            try await refuseIfTaken(email, address, call)
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
        return response(signedIn, call)
    }

    private static func response(_ signedIn: SignedIn, _ call: Call) -> AccountsSignUpResponse {
        AccountsSignUpResponse(
            user: signedIn.user, tokens: signedIn.tokens, deviceToken: call.deviceToken(for: signedIn.user))
    }

    static func endUser(of request: AccountsSignUpRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken, email: request.email)
    }

    /// Gives the signed-in user an email and a password; an anonymous one becomes a known one with the same uid.
    private static func linkPassword(
        _ request: AccountsSignUpRequest, _ address: EndUserAddress?, _ call: Call
    ) async throws -> AccountsSignUpResponse {
        if let again = try await call.repeatedChange(idToken: request.idToken) { return response(again, call) }
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
            try await call.chargeProbe(email, address: address)
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
        return response(signedIn, call)
    }

    /// Says EMAIL_EXISTS before the hash is paid for; the transaction that creates the account checks again. Answers
    /// that tell of an account are throttled, so that a list of addresses cannot be tried out.
    private static func refuseIfTaken(_ email: Email, _ address: EndUserAddress?, _ call: Call) async throws {
        // In this order: who finds the email taken by this very request finds its record as well.
        guard try call.project.isTaken(email, tenantID: call.tenantID), try !call.project.isRepeated(call.origin) else {
            return
        }
        try await call.chargeProbe(email, address: address)
        throw Failure.emailExists
    }
}
