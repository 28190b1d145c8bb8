import Base
import Identity
import Messages
import Store

/// postern.v1.Users/Update
enum UsersUpdate: SlowMethod {
    private static let paths: Set<Text> = [
        "email", "email_verified", "password", "display_name", "photo_url", "phone_number", "disabled",
    ]

    /// Disabling and a new password end the user's sessions. Other changes are no relief.
    static func purpose(of request: UsersUpdateRequest, _ rule: MethodDescriptor) -> WritePurpose {
        let paths = request.updateMask?.paths ?? []
        return paths.contains("disabled") && request.disabled || paths.contains("password") ? .relief : .session
    }

    static func handle(_ request: UsersUpdateRequest, _ call: Call) async throws -> UsersUpdateResponse {
        let mask = try UpdateMask(request.updateMask, allowed: paths)
        let limits = call.limits
        var change = AdminChange()
        if mask.contains("email") {
            change.email = .some(
                try request.email.isEmpty
                    ? nil : Values.email(request.email, form: call.settings.emailForm, limits: limits))
        }
        if mask.contains("email_verified") { change.emailVerified = request.emailVerified }
        if mask.contains("disabled") { change.disabled = request.disabled }
        if mask.contains("display_name") {
            try Values.checkDisplayName(request.displayName, limits: limits)
            change.displayName = request.displayName
        }
        if mask.contains("photo_url") {
            try Values.checkPhotoURL(request.photoURL, limits: limits)
            change.photoURL = request.photoURL
        }
        if mask.contains("phone_number") {
            try Values.checkPhoneNumber(request.phoneNumber)
            change.phoneNumber = request.phoneNumber
        }
        if mask.contains("password") {
            change.passwordHash = .empty
            if !request.password.isEmpty {
                try Values.checkNewPassword(request.password, limits: limits)
                change.passwordHash = try await call.project.passwords.hash(
                    request.password, settings: call.settings, deadline: call.deadline)
            }
        }
        let user = try await call.userSession(request.uid).administer(
            change, origin: call.origin, validateOnly: request.validateOnly)
        if change.passwordHash != nil, !request.validateOnly { call.forgiveGuesses(of: user) }
        return UsersUpdateResponse(user: user)
    }
}
