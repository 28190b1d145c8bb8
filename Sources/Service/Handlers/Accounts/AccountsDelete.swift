import Base
import Identity
import Messages

/// postern.v1.Accounts/Delete
enum AccountsDelete: SlowMethod {
    static func handle(_ request: AccountsDeleteRequest, _ call: Call) async throws -> AccountsDeleteResponse {
        let isRepeated = try call.project.isRepeatedDeletion(
            idToken: request.idToken, settings: call.settings, origin: call.origin)
        if isRepeated { return AccountsDeleteResponse() }
        let verified = try call.verifiedUser(idToken: request.idToken)
        let user = verified.account.user
        if let toggle = SelfService.refusalOfDeletion(call.settings) {
            throw await call.refusal(by: toggle, email: Email(stored: user.email), uid: user.uid)
        }
        try verified.requireRecentLogin(now: call.now)
        try await call.userSession(user.uid).delete(origin: call.origin, validateOnly: request.validateOnly)
        return AccountsDeleteResponse()
    }

    static func endUser(of request: AccountsDeleteRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }
}
