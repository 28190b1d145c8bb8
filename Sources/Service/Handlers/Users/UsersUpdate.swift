import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/Update
enum UsersUpdate: SlowMethod {
    /// Disabling and a new password end the user's sessions. Other changes are no relief.
    static func purpose(of request: UsersUpdateRequest, _ rule: MethodDescriptor) -> WritePurpose {
        guard let mask = try? UpdateMask<UsersUpdateRequest>(request.updateMask?.paths) else { return .session }
        return mask.contains(.disabled) && request.disabled || mask.contains(.password) ? .relief : .session
    }

    static func handle(_ request: UsersUpdateRequest, _ call: Call) async throws -> UsersUpdateResponse {
        let mask = try UpdateMask<UsersUpdateRequest>(request.updateMask?.paths)
        let limits = call.limits
        var change = AdminChange()
        for path in mask.paths {
            switch path {
            case .email:
                let email =
                    try request.email.isEmpty
                    ? nil : Values.email(request.email, form: call.settings.emailForm, limits: limits)
                change.email = .some(email)
            case .emailVerified: change.emailVerified = request.emailVerified
            case .disabled: change.disabled = request.disabled
            case .displayName:
                try Values.checkDisplayName(request.displayName, limits: limits)
                change.displayName = request.displayName
            case .photoURL:
                try Values.checkPhotoURL(request.photoURL, limits: limits)
                change.photoURL = request.photoURL
            case .phoneNumber:
                try Values.checkPhoneNumber(request.phoneNumber)
                change.phoneNumber = request.phoneNumber
            case .password:
                if !request.password.isEmpty { try Values.checkNewPassword(request.password, limits: limits) }
            }
        }
        // Last: a hash is not made for what is refused.
        if mask.contains(.password) {
            change.passwordHash =
                request.password.isEmpty
                ? .empty
                : try await call.project.passwords.hash(
                    request.password, settings: call.settings, deadline: call.deadline)
        }
        let user = try await call.userSession(request.uid).administer(
            change, origin: call.origin, validateOnly: request.validateOnly)
        if change.passwordHash != nil, !request.validateOnly { call.forgiveGuesses(of: user) }
        return UsersUpdateResponse(user: user)
    }
}
