import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/Update
enum UsersUpdate: SlowMethod {
    /// Disabling, revoking tokens and a new password end the user's sessions. Other changes are no relief.
    static func purpose(of request: UsersUpdateRequest, _ rule: MethodDescriptor) -> WritePurpose {
        guard let mask = try? UpdateMask<UsersUpdateRequest>(request.updateMask?.paths) else { return .session }
        if mask.contains(.linkProviders) { return .growth }
        let ends = mask.contains(.disabled) && request.disabled || mask.contains(.revokeTokens) && request.revokeTokens
        return ends || mask.contains(.password) ? .relief : .session
    }

    static func handle(_ request: UsersUpdateRequest, _ call: Call) async throws -> UsersUpdateResponse {
        let mask = try UpdateMask<UsersUpdateRequest>(request.updateMask?.paths)
        var change = try change(request, mask, call)
        // The password comes last, so that no hash is made for a refused request.
        if mask.contains(.password) {
            change.passwordHash =
                request.password.isEmpty
                ? .empty
                : try await call.project.passwords.hash(request.password, call.passwordTurn())
        }
        let user = try await call.userSession(request.uid).administer(
            change, origin: call.origin, validateOnly: request.validateOnly)
        if change.passwordHash != nil, !request.validateOnly { call.forgiveGuesses(of: user) }
        return UsersUpdateResponse(
            user: user, ignoredClaims: change.customClaims.map { Values.ignoredClaims(in: $0) } ?? [])
    }

    /// All changes except the hash of a new password, which is only checked.
    private static func change(
        _ request: UsersUpdateRequest, _ mask: UpdateMask<UsersUpdateRequest>, _ call: Call
    ) throws -> AdminChange {
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
            case .customClaimsJSON:
                try Values.checkCustomClaims(request.customClaimsJSON, limits: limits)
                change.customClaims = request.customClaimsJSON
            case .linkProviders:
                try checkCount(request.linkProviders.count, field: "link_providers")
                for provider in request.linkProviders {
                    try Values.checkProvider(
                        provider, field: "link_providers", form: call.settings.emailForm, limits: limits)
                }
                change.linkedProviders = request.linkProviders
            case .unlinkProviderIDs:
                try checkCount(request.unlinkProviderIDs.count, field: "unlink_provider_ids")
                change.unlinkedProviderIDs = request.unlinkProviderIDs
            case .revokeTokens: change.revokesTokens = request.revokeTokens
            }
        }
        return change
    }

    private static func checkCount(_ count: Int, field: String) throws(Failure) {
        guard count <= Values.providersPerUserMax else {
            throw .invalid(.tooManyItems, field: field, "must have at most \(Values.providersPerUserMax) items")
        }
    }
}
