import Base
import Identity
import Messages
import Rules
import Store
import Tokens

/// postern.v1.Accounts/Unlink
enum AccountsUnlink: SlowMethod {
    static func handle(_ request: AccountsUnlinkRequest, _ call: Call) async throws -> AccountsUnlinkResponse {
        let endUserRequest = call.endUserRequest(idToken: request.idToken)
        if let again = try await call.project.repeatedChanges.answer(to: endUserRequest) {
            return AccountsUnlinkResponse(user: again.user, tokens: again.tokens)
        }
        let verified = try call.verifiedUser(idToken: request.idToken)
        try verified.requireRecentLogin(now: call.now)
        let providerID = request.providerID
        let isForced = request.force
        let user = verified.account.user
        let signedIn = try await call.project.refusals.recording(of: RefusedEndUser(user), endUserRequest) {
            try await call.userSession(user.uid).change(by: verified.token, endUserRequest) { transaction, current in
                let settings = try transaction.currentSettings(of: current.user.tenantID)
                let enabled = try transaction.enabledProviderIDs(of: current)
                let changed = try current.unlinking(
                    providerID, isForced: isForced, enabledProviderIDs: enabled, settings: settings)
                return AccountEffect(
                    changed, kind: .providerUnlinked, detail: providerID, endsSessions: .signedOut)
            }
        }
        return AccountsUnlinkResponse(user: signedIn.user, tokens: signedIn.tokens)
    }

    static func endUser(of request: AccountsUnlinkRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }
}
