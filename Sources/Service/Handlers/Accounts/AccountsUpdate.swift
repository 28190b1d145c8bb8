import Base
import Identity
import Messages
import Tokens

/// postern.v1.Accounts/Update
enum AccountsUpdate: SlowMethod {
    static func handle(_ request: AccountsUpdateRequest, _ call: Call) async throws -> AccountsUpdateResponse {
        let verified = try call.verifiedUser(idToken: request.idToken)
        let paths = try UpdateMask(request.updateMask, allowed: ["display_name", "photo_url", "password"])
        var change = ProfileChange()
        if paths.contains("display_name") {
            try Values.checkDisplayName(request.displayName, limits: call.limits)
            change.displayName = request.displayName
        }
        if paths.contains("photo_url") {
            try Values.checkPhotoURL(request.photoURL, limits: call.limits)
            change.photoURL = request.photoURL
        }
        if paths.contains("password") {
            try Values.checkNewPassword(request.password, limits: call.limits)
            try verified.requireRecentLogin(now: call.now)
            change.newPasswordHash = try await call.project.passwords.hash(
                request.password, settings: call.settings, deadline: call.deadline)
        }
        let (user, tokens) = try await call.userSession(verified.account.user.uid).update(
            change, session: verified.token.sessionID, settings: call.settings, origin: call.origin,
            validateOnly: request.validateOnly, deadline: call.deadline)
        return AccountsUpdateResponse(user: user, tokens: tokens)
    }
}
