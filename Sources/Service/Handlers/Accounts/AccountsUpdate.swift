import Base
import Identity
import Messages
import Rules
import Tokens

/// postern.v1.Accounts/Update
enum AccountsUpdate: SlowMethod {
    static func handle(_ request: AccountsUpdateRequest, _ call: Call) async throws -> AccountsUpdateResponse {
        let address = try call.endUserAddress(request.endUserIP)
        if let again = try await call.repeatedChange(idToken: request.idToken) { return response(again, call) }
        let verified = try call.verifiedUser(idToken: request.idToken)
        let mask = try UpdateMask<AccountsUpdateRequest>(request.updateMask?.paths)
        let change = try change(by: request, mask, of: verified, call)
        let user = verified.account.user
        guard let email = change.newEmail, email != Email(stored: user.email) else {
            return try await apply(change, of: verified, request, mask, call)
        }
        // Whoever goes from one unproved email to the next takes none of them, and asks about each.
        let givesBack = !request.validateOnly && user.emailVerified
        return try await call.probing(address: address, givesBack: givesBack) {
            try await apply(change, of: verified, request, mask, call)
        }
    }

    static func endUser(of request: AccountsUpdateRequest) -> NamedEndUser {
        NamedEndUser(idToken: request.idToken)
    }

    /// The change, with its form checked; without the hash of a new password.
    private static func change(
        by request: AccountsUpdateRequest, _ mask: UpdateMask<AccountsUpdateRequest>, of verified: VerifiedUser,
        _ call: Call
    ) throws -> ProfileChange {
        var change = ProfileChange()
        if mask.contains(.displayName) {
            try Values.checkDisplayName(request.displayName, limits: call.limits)
            change.displayName = request.displayName
        }
        if mask.contains(.photoURL) {
            try Values.checkPhotoURL(request.photoURL, limits: call.limits)
            change.photoURL = request.photoURL
        }
        if mask.contains(.email) { change.newEmail = try newEmail(request.email, of: verified, call) }
        if mask.contains(.password) {
            try call.checkNewPassword(request.password)
            try verified.requireRecentLogin(now: call.now)
        }
        return change
    }

    private static func newEmail(_ text: Text, of verified: VerifiedUser, _ call: Call) throws -> Email {
        guard !call.settings.hasEmailPrivacy else {
            throw Failure.refused(
                .operationNotAllowed, by: "enable_email_privacy",
                "This tenant's users change their email by proving the new one: send VERIFY_AND_CHANGE_EMAIL.")
        }
        let email = try Values.email(text, form: call.settings.emailForm, limits: call.limits)
        try verified.requireRecentLogin(now: call.now)
        return email
    }

    private static func apply(
        _ change: ProfileChange, of verified: VerifiedUser, _ request: AccountsUpdateRequest,
        _ mask: UpdateMask<AccountsUpdateRequest>, _ call: Call
    ) async throws -> AccountsUpdateResponse {
        var change = change
        if mask.contains(.password) {
            change.newPasswordHash = try await call.project.passwords.hash(
                request.password, call.passwordTurn(address: call.endUserAddress(request.endUserIP)))
        }
        let changed = try await call.project.profileUpdates.apply(
            change, of: verified, validateOnly: request.validateOnly, call.endUserRequest(idToken: request.idToken))
        switch changed {
        case .session(let signedIn):
            if mask.contains(.password) { call.forgiveGuesses(of: signedIn.user) }
            return response(signedIn, call)
        case .profile(let user): return AccountsUpdateResponse(user: user)
        }
    }

    private static func response(_ signedIn: SignedIn, _ call: Call) -> AccountsUpdateResponse {
        AccountsUpdateResponse(
            user: signedIn.user, tokens: signedIn.tokens, deviceToken: call.deviceToken(for: signedIn))
    }
}
