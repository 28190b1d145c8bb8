import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Accounts/Delete
enum AccountsDelete: SlowMethod {
    static func purpose(of request: AccountsDeleteRequest, _ rule: MethodDescriptor) -> WritePurpose { .removal }

    static func handle(_ request: AccountsDeleteRequest, _ call: Call) async throws -> AccountsDeleteResponse {
        let endUserRequest = call.endUserRequest(idToken: request.idToken)
        if try call.project.repeatedChanges.isDeletion(endUserRequest) { return AccountsDeleteResponse() }
        let verified = try call.verifiedUser(idToken: request.idToken)
        let user = verified.account.user
        if let toggle = SelfService.refusalOfDeletion(call.settings) {
            throw await call.project.refusals.failure(by: toggle, of: RefusedEndUser(user), endUserRequest)
        }
        try verified.requireRecentLogin(now: call.now)
        try await call.project.refusals.recording(of: RefusedEndUser(user), endUserRequest) {
            try await call.userSession(user.uid).delete(
                by: verified, origin: call.origin, validateOnly: request.validateOnly)
        }
        if !request.validateOnly {
            call.project.guesses.chargeProbe(ofDeleted: verified.account, endUserRequest)
        }
        return AccountsDeleteResponse()
    }

    static func endUser(of request: AccountsDeleteRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }
}
