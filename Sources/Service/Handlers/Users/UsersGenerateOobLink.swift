import Base
import Identity
import Messages
import Rules

/// postern.v1.Users/GenerateOobLink
enum UsersGenerateOobLink: SlowMethod {
    static func handle(
        _ request: UsersGenerateOobLinkRequest, _ call: Call
    ) async throws -> UsersGenerateOobLinkResponse {
        guard ![.unspecified, .recoverEmail, .rejectEmail, .revertSecondFactorAddition].contains(request.requestType)
        else {
            throw Failure.invalid(.missingReqType, field: "request_type", "must be a kind that can be asked for")
        }
        try Values.checkContinueURL(request.continueURL, limits: call.limits)
        try call.project.continueURLs.check(request.continueURL, settings: call.settings)
        // Nobody could sign in with the link.
        if request.requestType == .emailSignin { try call.settings.requireAllowed(.emailLink) }
        if request.email.isEmpty { throw Failure.missingEmail }
        let email = try Values.email(request.email, form: .toFind, limits: call.limits)
        var order = OobOrder(request.requestType, email: email.address)
        order.continueURL = request.continueURL
        if request.requestType != .emailSignin {
            guard let account = try call.project.users.account(email: email, tenantID: call.tenantID) else {
                throw Failure.noUserWithEmail
            }
            order.uid = account.user.uid
            order.email = account.user.email
        }
        if request.requestType == .verifyAndChangeEmail {
            if request.newEmail.isEmpty {
                throw Failure.invalid(.missingNewEmail, field: "new_email", "is required")
            }
            let newEmail = try Values.email(
                request.newEmail, field: "new_email", form: call.settings.emailForm, limits: call.limits)
            if try call.project.users.isTaken(newEmail, tenantID: call.tenantID), newEmail != email {
                throw Failure.emailExists
            }
            order.newEmail = newEmail.address
        }
        let made = try await call.project.oobDelivery.generate(
            order, settings: call.settings, validateOnly: request.validateOnly, origin: call.origin)
        return UsersGenerateOobLinkResponse(
            oobCode: made.code, oobLink: made.link, expiresAtMicros: made.expiresAt.microseconds,
            notMeLink: made.notMeLink)
    }
}
