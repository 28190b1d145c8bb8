import Base
import Messages
import PosternClient
import Synchronization

extension User {
    /// Asks the server for what another device may have changed.
    public func reload() async throws {
        try await inTurn { idToken throws(AuthError) in
            let asked = backend.clock.moment()
            let request = AccountsLookupRequest(tenantID: backend.tenantID, idToken: idToken)
            let response = try await backend.call { try await backend.accounts.lookup(request) }
            try apply(Answer(response.user, nil), asked: asked, cause: .requested)
        }
    }

    /// Proves the user again, with any credential linked to it: what needs a recent login can then be done. Throws
    /// userMismatch for a credential of another user.
    @discardableResult
    public func reauthenticate(with credential: AuthCredential) async throws -> AuthDataResult {
        let answer = try await exchange(.reauthenticated) { [backend] idToken, options throws(AuthError) in
            try await backend.reauthenticate(credential, idToken, options)
        }
        return AuthDataResult(self, answer, providerID: credential.provider)
    }

    /// Adds a way to sign in. An anonymous user becomes a known one and keeps its uid; everybody else needs a recent
    /// login. Throws credentialAlreadyInUse, with an `updatedCredential` that signs in to the other account.
    @discardableResult
    public func link(with credential: AuthCredential) async throws -> AuthDataResult {
        let answer = try await exchange(.providersChanged) { [backend] idToken, options throws(AuthError) in
            try await backend.link(credential, to: idToken, options)
        }
        return AuthDataResult(self, answer, providerID: credential.provider)
    }

    /// Removes a way to sign in, for example "google.com". Needs a recent login; the last one is kept
    /// (LAST_SIGN_IN_METHOD).
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

    /// Signs every other device out. Needs a recent login.
    public func updatePassword(to password: String) async throws {
        let password = try backend.secret(password, .weakPassword)
        try await update(["password"], .passwordChanged) { $0.password = password }
    }

    /// Only where the tenant has email-enumeration protection off; elsewhere operationNotAllowed, and
    /// `sendEmailVerification(beforeUpdatingEmail:)` is the way. Signs every other device out. Needs a recent login.
    public func updateEmail(to email: String) async throws {
        let email = try backend.text(email, .invalidEmail)
        try await update(["email"], .emailChanged) { $0.email = email }
    }

    /// To set display name and photo: change the request's fields, then `commitChanges()`.
    public func createProfileChangeRequest() -> UserProfileChangeRequest { UserProfileChangeRequest(user: self) }

    /// Mails a link that proves the email to be this user's.
    public func sendEmailVerification(
        with settings: ActionCodeSettings = ActionCodeSettings()
    ) async throws {
        try await inTurn { idToken throws(AuthError) in
            try await backend.sendCode(.verifyEmail, idToken: idToken, settings: settings)
        }
    }

    /// Mails a link to `email` that makes it this user's. Needs a recent login; the change signs every device out.
    public func sendEmailVerification(
        beforeUpdatingEmail email: String, actionCodeSettings settings: ActionCodeSettings = ActionCodeSettings()
    ) async throws {
        let email = try backend.text(email, .invalidEmail)
        try await inTurn { idToken throws(AuthError) in
            try await backend.sendCode(.verifyAndChangeEmail, newEmail: email, idToken: idToken, settings: settings)
        }
    }

    /// Deletes the account and signs out. Needs a recent login; adminRestrictedOperation where the tenant leaves
    /// deletion to its administrators. After an answer that was lost, calling it again finds out what became of it.
    public func delete() async throws {
        try await inTurn { idToken throws(AuthError) in
            let request = AccountsDeleteRequest(tenantID: backend.tenantID, idToken: idToken)
            do throws(AuthError) {
                _ = try await backend.call { try await backend.accounts.delete(request) }
            } catch {
                let wasLostBefore = state.withLock { state in
                    defer { state.mayBeDeleted = state.mayBeDeleted || error.isLostAnswer }
                    return state.mayBeDeleted
                }
                guard wasLostBefore, error.reason == "USER_NOT_FOUND" else { throw error }
            }
            // In turn: what the server tells of it by itself comes after.
            end(nil)
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

/// New values for a user's profile; `commitChanges` sends those that were set.
public struct UserProfileChangeRequest: Sendable {
    /// At most 256 bytes; empty removes it.
    public var displayName: String?
    /// http or https, at most 2,048 bytes; empty removes it.
    public var photoURL: String?
    private let user: User

    init(user: User) { self.user = user }

    /// Throws what the server says of the values; without values nothing is sent.
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
