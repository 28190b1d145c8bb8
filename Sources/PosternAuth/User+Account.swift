import Base
import Messages
import PosternClient
import Synchronization

extension User {
    /// Fetches the account again, to learn of changes that other devices or administrators made.
    public func reload() async throws {
        try await inTurn { idToken throws(AuthError) in
            let asked = backend.clock.moment()
            let request = AccountsLookupRequest(tenantID: backend.tenantID, idToken: idToken)
            let response = try await backend.call { try await backend.accounts.lookup(request) }
            try apply(Answer(response.user, nil), asked: asked, cause: .requested)
        }
    }

    /// Proves again that the user is present, with any credential that is linked to the account. Operations that need a
    /// recent login work afterwards.
    ///
    /// Throws userMismatch for a credential of another user, and secondFactorRequired with a `multiFactorResolver` for
    /// a user who has a second factor.
    @discardableResult
    public func reauthenticate(with credential: AuthCredential) async throws -> AuthDataResult {
        try await prove(credential, .reauthenticated) { [backend] idToken, options throws(AuthError) in
            try await backend.reauthenticate(credential, idToken, options)
        }
    }

    /// Adds a way to sign in.
    ///
    /// An anonymous user becomes a permanent one and keeps the uid. Every other user needs a recent login
    /// (requiresRecentLogin). Throws credentialAlreadyInUse, with an `updatedCredential` that signs in to the other
    /// account; providerAlreadyLinked; emailAlreadyInUse.
    @discardableResult
    public func link(with credential: AuthCredential) async throws -> AuthDataResult {
        try await prove(credential, .providersChanged) { [backend] idToken, options throws(AuthError) in
            try await backend.link(credential, to: idToken, options)
        }
    }

    /// Removes a way to sign in, for example "google.com".
    ///
    /// Needs a recent login. Throws noSuchProvider, and operationNotAllowed with the reason LAST_SIGN_IN_METHOD for the
    /// last one.
    @discardableResult
    public func unlink(fromProvider providerID: String) async throws -> User {
        let provider = try backend.text(providerID, .noSuchProvider)
        _ = try await exchange(.providersChanged) { [backend] idToken, options throws(AuthError) in
            let request = AccountsUnlinkRequest(
                tenantID: backend.tenantID, idToken: idToken, providerID: provider)
            let response = try await backend.call { try await backend.accounts.unlink(request, options: options) }
            return try Answer(response.user, response.tokens)
        }
        return self
    }

    /// Sets a new password and signs the user out on every other device.
    ///
    /// Needs a recent login. Throws weakPassword, passwordDoesNotMeetRequirements.
    public func updatePassword(to password: String) async throws {
        let password = try backend.secret(password, .weakPassword)
        try await update(["password"], .passwordChanged) { $0.password = password }
    }

    /// Sets a new email at once and signs the user out on every other device. Needs a recent login.
    ///
    /// It works only in tenants without email-enumeration protection. Elsewhere it throws operationNotAllowed: use
    /// `sendEmailVerification(beforeUpdatingEmail:)`.
    public func updateEmail(to email: String) async throws {
        let email = try backend.text(email, .invalidEmail)
        try await update(["email"], .emailChanged) { $0.email = email }
    }

    /// Begins a change of the display name and the photo. Set the request's properties, then call `commitChanges()`.
    public func createProfileChangeRequest() -> UserProfileChangeRequest { UserProfileChangeRequest(user: self) }

    /// Mails a link to the user's email. The link proves that the email belongs to the user.
    public func sendEmailVerification(
        with settings: ActionCodeSettings = ActionCodeSettings()
    ) async throws {
        try await inTurn { idToken throws(AuthError) in
            try await backend.sendCode(.verifyEmail, idToken: idToken, settings: settings)
        }
    }

    /// Mails a link to `email`. The link makes `email` the user's email and signs the user out on every device. Needs a
    /// recent login.
    ///
    /// A user without an email gets a first one. Throws missingEmail for a user who could not sign in again, such as an
    /// anonymous one: link a credential with the email instead.
    public func sendEmailVerification(
        beforeUpdatingEmail email: String, actionCodeSettings settings: ActionCodeSettings = ActionCodeSettings()
    ) async throws {
        let email = try backend.text(email, .invalidEmail)
        try await inTurn { idToken throws(AuthError) in
            try await backend.sendCode(.verifyAndChangeEmail, newEmail: email, idToken: idToken, settings: settings)
        }
    }

    /// Deletes the account and signs the user out. Needs a recent login.
    ///
    /// Throws adminRestrictedOperation where the tenant has deletion switched off. After a lost answer, or when
    /// the task was cancelled, call `delete` again: it finds out whether the account is gone.
    public func delete() async throws {
        try await inTurn { idToken throws(AuthError) in
            let request = AccountsDeleteRequest(tenantID: backend.tenantID, idToken: idToken)
            do throws(AuthError) {
                _ = try await backend.call { try await backend.accounts.delete(request) }
            } catch {
                let wasLostBefore = state.withLock { state in
                    // A call that was cancelled may have been sent.
                    defer { state.mayBeDeleted = state.mayBeDeleted || error.isLostAnswer || error.isCancellation }
                    return state.mayBeDeleted
                }
                guard wasLostBefore, error.is(.userNotFound) else { throw error }
            }
            // In turn, so that the server's own message about the deletion is handled afterwards.
            end(nil)
        }
    }

    /// Makes a change that a credential proves, and for which the server may want a second factor.
    @discardableResult
    func prove(
        _ credential: AuthCredential, _ cause: TokenRefreshCause,
        _ change: @escaping @Sendable (Text, CallOptions) async throws(AuthError) -> Answer
    ) async throws -> AuthDataResult {
        let providerID = credential.provider
        do {
            return AuthDataResult(self, try await exchange(cause, change), providerID: providerID)
        } catch let error as AuthError {
            let refused = RefusedSignIn(backend: backend, auth: observers.first, providerID: providerID) { call in
                (self, try await self.exchange(cause) { _, options throws(AuthError) in try await call(options) })
            }
            throw error.withPendingSignIn(refused)
        }
    }

    func update(
        _ paths: [Text], _ cause: TokenRefreshCause, _ change: (inout AccountsUpdateRequest) -> Void
    ) async throws {
        var request = AccountsUpdateRequest(
            tenantID: backend.tenantID, updateMask: ProtobufFieldMask(paths: paths))
        change(&request)
        _ = try await exchange(cause) { [backend, request] idToken, options throws(AuthError) in
            var request = request
            request.idToken = idToken
            let response = try await backend.call { try await backend.accounts.update(request, options: options) }
            return try backend.answer(response.user, response.tokens, deviceToken: response.deviceToken)
        }
    }
}

/// A change of a user's profile. `commitChanges` sends the properties that were set.
///
/// ```swift
/// var request = user.createProfileChangeRequest()
/// request.displayName = "Ada"
/// try await request.commitChanges()
/// ```
public struct UserProfileChangeRequest: Sendable {
    /// The new display name, at most 256 bytes. Empty removes it. Nil leaves it as it is.
    public var displayName: String?
    /// The new photo: an http or https URL, at most 2,048 bytes. Empty removes it. Nil leaves it as it is.
    public var photoURL: String?
    private let user: User

    init(user: User) { self.user = user }

    /// Sends the change. Without a property that was set, nothing is sent.
    public func commitChanges() async throws {
        var paths: [Text] = []
        let displayName = try displayName.map { name throws(AuthError) in try user.backend.text(name) }
        let photoURL = try photoURL.map { url throws(AuthError) in try user.backend.text(url) }
        if displayName != nil { paths.append("display_name") }
        if photoURL != nil { paths.append("photo_url") }
        guard !paths.isEmpty else { return }
        try await user.update(paths, .requested) { request in
            request.displayName = displayName ?? .empty
            request.photoURL = photoURL ?? .empty
        }
    }
}
