import Base
import Identity
import Messages
import Rules

/// postern.v1.Accounts/SendOobCode
enum AccountsSendOobCode: SlowMethod {
    static func handle(_ request: AccountsSendOobCodeRequest, _ call: Call) async throws -> AccountsSendOobCodeResponse
    {
        let address = try call.endUserAddress(request.endUserIP)
        // A repeat is counted neither as a mail nor as a question, so it must not look anything up either.
        if let answer = try call.project.outbox.earlierAnswer(to: call.origin) { return answer }
        try Values.checkContinueURL(request.continueURL, limits: call.limits)
        try Values.checkLocale(request.locale, limits: call.limits)
        try call.project.continueURLs.check(request.continueURL, settings: call.settings)
        var order: OobOrder
        switch request.requestType {
        case .emailSignin: order = try emailSignIn(request, call)
        case .passwordReset: order = try await passwordReset(request, address, call)
        case .verifyEmail: order = try verification(request, call)
        case .verifyAndChangeEmail: order = try await change(request, address, call)
        case .unspecified, .recoverEmail, .rejectEmail, .revertSecondFactorAddition:
            throw Failure.invalid(.missingReqType, field: "request_type", "must be a kind that can be asked for")
        }
        order.continueURL = request.continueURL
        if !call.settings.isSynthetic, let recipient = Email(stored: order.recipient) {
            try await call.project.tenants.tenant(call.tenantID).admitSend(
                email: recipient, askedBy: asker(of: order), address: address, settings: call.settings)
        }
        order.locale = request.locale
        let answer = AccountsSendOobCodeResponse(email: request.email.isEmpty ? order.recipient : request.email)
        try await call.project.outbox.send(order, answer: answer, settings: call.settings, origin: call.origin)
        return answer
    }

    static func endUser(of request: AccountsSendOobCodeRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken, email: request.email)
    }

    /// Who asks for the mail. Only the code that changes an email goes to an address that the asker need not have.
    private static func asker(of order: OobOrder) -> MailAsker {
        switch order.type {
        case .verifyEmail: return .owner
        case .verifyAndChangeEmail:
            let isOwn = Email(stored: order.email) == Email(stored: order.newEmail)
            return isOwn ? .owner : .stranger(uid: order.uid)
        default: return .anybody(order.type)
        }
    }

    /// The user need not exist yet. But if end users may not sign up, or not with such an address, nothing is sent to
    /// an unknown address.
    private static func emailSignIn(_ request: AccountsSendOobCodeRequest, _ call: Call) throws -> OobOrder {
        try call.settings.requireAllowed(.emailLink)
        if request.email.isEmpty { throw Failure.missingEmail }
        let email = try Values.email(request.email, form: .toFind, limits: call.limits)
        let known = try call.project.users.accountReadAlike(email: email, tenantID: call.tenantID)
        // The mail goes to the address as it is stored, not as a stranger typed it.
        var order = OobOrder(.emailSignin, email: known?.user.email ?? email.address)
        let maySignUp = SelfService.refusalOfSignUp(call.settings) == nil && call.settings.emailForm.admits(email)
        order.isDecoy = known == nil && !maySignUp
        return order
    }

    private static func passwordReset(
        _ request: AccountsSendOobCodeRequest, _ address: EndUserAddress?, _ call: Call
    ) async throws -> OobOrder {
        guard call.settings.allowsPasswordSignup else { throw Failure.passwordLoginDisabled }
        if request.email.isEmpty { throw Failure.missingEmail }
        let email = try Values.email(request.email, form: .toFind, limits: call.limits)
        if !call.settings.hasEmailPrivacy { try await call.chargeProbe(address: address) }
        guard let account = try call.project.users.accountReadAlike(email: email, tenantID: call.tenantID) else {
            guard call.settings.hasEmailPrivacy else { throw Failure.emailNotFound }
            var order = OobOrder(.passwordReset, email: email.address)
            order.isDecoy = true
            return order
        }
        // The mail goes to the address as it is stored, not as a stranger typed it.
        var order = OobOrder(.passwordReset, email: account.user.email)
        order.uid = account.user.uid
        order.displayName = account.user.displayName
        return order
    }

    private static func verification(_ request: AccountsSendOobCodeRequest, _ call: Call) throws -> OobOrder {
        let enrolling = try call.enrollingUser(idToken: request.idToken)
        if enrolling.account.user.email.isEmpty { throw Failure.missingEmail }
        return order(.verifyEmail, askedBy: enrolling, call)
    }

    /// A code for the user who asks for it.
    private static func order(_ type: OobRequestType, askedBy asker: EnrollingUser, _ call: Call) -> OobOrder {
        let user = asker.account.user
        var order = OobOrder(type, email: user.email)
        order.uid = user.uid
        order.displayName = user.displayName
        order.requireAsker = { try asker.requireStillProved(settings: call.settings, now: call.now, in: $0) }
        return order
    }

    private static func change(
        _ request: AccountsSendOobCodeRequest, _ address: EndUserAddress?, _ call: Call
    ) async throws -> OobOrder {
        let enrolling = try call.enrollingUser(idToken: request.idToken)
        if request.newEmail.isEmpty {
            throw Failure.invalid(.missingNewEmail, field: "new_email", "is required")
        }
        let newEmail = try Values.email(
            request.newEmail, field: "new_email", form: call.settings.emailForm, limits: call.limits)
        let user = enrolling.account.user
        // The change ends every session. A user who cannot sign in again, such as an anonymous one, links a way to sign
        // in instead. The holder of an enrollment credential has signed in just now.
        if enrolling.account.hasNoWayIn, !enrolling.isStopped { throw Failure.missingEmail }
        try enrolling.requireRecentLogin(settings: call.settings, now: call.now)
        var order = order(.verifyAndChangeEmail, askedBy: enrolling, call)
        order.newEmail = newEmail.address
        order.pendingSignInID = enrolling.pendingSignInID
        if Email(stored: user.email) != newEmail {
            if !call.settings.hasEmailPrivacy { try await call.chargeProbe(address: address) }
            if try call.project.users.isTaken(newEmail, tenantID: call.tenantID) {
                guard call.settings.hasEmailPrivacy else { throw Failure.emailExists }
                order.isDecoy = true
            }
        }
        return order
    }
}
