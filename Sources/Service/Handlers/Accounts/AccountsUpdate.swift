import Base
import Identity
import Messages
import Rules
import Tokens

/// postern.v1.Accounts/Update
enum AccountsUpdate: SlowMethod {
    static func handle(_ request: AccountsUpdateRequest, _ call: Call) async throws -> AccountsUpdateResponse {
        let address = try call.endUserAddress(request.endUserIP)
        if let again = try await call.repeatedChange(idToken: request.idToken) {
            return AccountsUpdateResponse(
                user: again.user, tokens: again.tokens, deviceToken: call.deviceToken(for: again.user))
        }
        let verified = try call.verifiedUser(idToken: request.idToken)
        let mask = try UpdateMask<AccountsUpdateRequest>(request.updateMask?.paths)
        var change = ProfileChange()
        if mask.contains(.displayName) {
            try Values.checkDisplayName(request.displayName, limits: call.limits)
            change.displayName = request.displayName
        }
        if mask.contains(.photoURL) {
            try Values.checkPhotoURL(request.photoURL, limits: call.limits)
            change.photoURL = request.photoURL
        }
        if mask.contains(.email) {
            guard !call.settings.hasEmailPrivacy else {
                throw Failure(
                    .operationNotAllowed,
                    "This tenant's users change their email by proving the new one: send VERIFY_AND_CHANGE_EMAIL.")
            }
            change.newEmail = try Values.email(request.email, form: call.settings.emailForm, limits: call.limits)
            try verified.requireRecentLogin(now: call.now)
            if let email = change.newEmail, email != Email(stored: verified.account.user.email),
                try call.project.users.isTaken(email, tenantID: call.tenantID)
            {
                try await call.chargeProbe(address: address)
            }
        }
        if mask.contains(.password) {
            try call.checkNewPassword(request.password)
            try verified.requireRecentLogin(now: call.now)
            change.newPasswordHash = try await call.project.passwords.hash(
                request.password, settings: call.settings, deadline: call.deadline)
        }
        let (user, tokens) = try await call.project.profileUpdates.apply(
            change, of: verified, origin: call.origin, validateOnly: request.validateOnly, deadline: call.deadline)
        if mask.contains(.password), !request.validateOnly { call.forgiveGuesses(of: user) }
        return AccountsUpdateResponse(
            user: user, tokens: tokens, deviceToken: tokens == nil ? .empty : call.deviceToken(for: user))
    }

    static func endUser(of request: AccountsUpdateRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }
}
