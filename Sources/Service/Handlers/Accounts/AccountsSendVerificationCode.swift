import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Accounts/SendVerificationCode
enum AccountsSendVerificationCode: SlowMethod {
    static func handle(
        _ request: AccountsSendVerificationCodeRequest, _ call: Call
    ) async throws -> AccountsSendVerificationCodeResponse {
        let endUser = call.endUserRequest(
            idToken: request.idToken, endUserIP: request.endUserIP, deviceToken: request.deviceToken)
        let address = try endUser.address()
        try call.settings.requireAllowed(.phone)
        var use = VerificationUse.signIn
        if !request.idToken.isEmpty {
            let user = try call.verifiedUser(idToken: request.idToken)
            // A user who may not link is refused before a message is paid for.
            try user.requireRecentLogin(now: call.now)
            use = .link(uid: user.account.user.uid)
        }
        let number = try PhoneNumber.read(request.phoneNumber)
        try Values.checkLocale(request.locale, limits: call.limits)
        var order = VerificationOrder(to: number, for: use)
        order.locale = request.locale
        order.address = address
        try look(up: number, &order, endUser, call)
        let sent = try await call.project.verificationCodes.send(order, endUser)
        return AccountsSendVerificationCodeResponse(
            sessionInfo: sent.sessionInfo, phoneNumber: sent.number.text, expiresAtMicros: sent.expiresAt.microseconds)
    }

    static func endUser(of request: AccountsSendVerificationCodeRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }

    /// The number need not belong to a user yet. But if end users may not sign up, nothing is sent to an unknown
    /// number. The number's owner may have a budget that strangers cannot spend.
    private static func look(
        up number: PhoneNumber, _ order: inout VerificationOrder, _ endUser: EndUserRequest, _ call: Call
    ) throws {
        let owner = try call.project.store.read { try $0.account(phone: number, tenantID: call.tenantID) }
        order.isDecoy =
            owner == nil && order.use == .signIn && SelfService.refusalOfSignUp(call.settings) != nil
        order.knownAsker = call.project.guesses.knownAsker(owner, endUser, address: order.address, now: call.now)
    }
}
