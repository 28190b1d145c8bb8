public import Base
public import Messages
public import PosternClient

// MARK: - Users

extension TenantAdmin {
    /// `uid` empty: made by the server. INVALID_EMAIL, WEAK_PASSWORD, INVALID_PHONE_NUMBER, DUPLICATE_LOCAL_ID,
    /// EMAIL_EXISTS, PHONE_NUMBER_EXISTS.
    @discardableResult
    public func createUser(
        uid: Text = .empty, email: Text = .empty, emailVerified: Bool = false, password: Secret = .empty,
        displayName: Text = .empty, photoURL: Text = .empty, phoneNumber: Text = .empty, disabled: Bool = false,
        options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let request = UsersCreateRequest(
            tenantID: tenantID, uid: uid, email: email, emailVerified: emailVerified, password: password,
            displayName: displayName, photoURL: photoURL, phoneNumber: phoneNumber, disabled: disabled)
        return try await part(keyed(users.create, request, options).user)
    }

    /// Throws USER_NOT_FOUND, as all methods about a user do. `lastRefreshAtMicros` is filled only if asked for.
    public func getUser(
        _ uid: Text, includingLastRefresh: Bool = false, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let request = UsersGetRequest(tenantID: tenantID, uid: uid, includeLastRefresh: includingLastRefresh)
        return try await part(users.get(request, options: options).user)
    }

    /// Throws USER_NOT_FOUND.
    public func getUserByEmail(_ email: Text, options: CallOptions = .init()) async throws(Failure) -> User {
        try await part(
            users.getByEmail(UsersGetByEmailRequest(tenantID: tenantID, email: email), options: options).user)
    }

    /// In the order of their uids' bytes. `pageSize`: 1...1,000; 0 = 100.
    public func listUsers(pageSize: Int32 = 0, options: CallOptions = .init()) -> Listing<User> {
        Listing { [users, tenantID] token throws(Failure) in
            let page = try await users.list(
                UsersListRequest(tenantID: tenantID, pageSize: pageSize, pageToken: token), options: options)
            return (page.users, page.nextPageToken)
        }
    }

    /// A new password, a new email or `disabled = true` ends the user's sessions. INVALID_UPDATE_MASK for an empty
    /// change.
    @discardableResult
    public func updateUser(
        _ uid: Text, _ change: UserChange, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let fields = change.fields
        var request = fields.message
        request.tenantID = tenantID
        request.uid = uid
        request.updateMask = fields.mask
        return try await part(keyed(users.update, request, options).user)
    }

    /// Replaces the claims by a JSON object, which goes into every ID token from the next one on; empty removes them.
    /// CLAIMS_TOO_LARGE (1,000 bytes), INVALID_CLAIMS, FORBIDDEN_CLAIM.
    @discardableResult
    public func setCustomUserClaims(
        _ uid: Text, json: Text, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let request = UsersSetCustomClaimsRequest(tenantID: tenantID, uid: uid, customClaimsJSON: json.bytes)
        return try await part(users.setCustomClaims(request, options: options).user)
    }

    public func deleteUser(_ uid: Text, options: CallOptions = .init()) async throws(Failure) {
        let request = UsersDeleteRequest(tenantID: tenantID, uid: uid)
        _ = try await keyed(users.delete, request, options)
    }
}

// MARK: - Sessions

extension TenantAdmin {
    /// Ends every session: its refresh tokens and all ID tokens issued until now are refused.
    @discardableResult
    public func revokeRefreshTokens(_ uid: Text, options: CallOptions = .init()) async throws(Failure) -> User {
        try await part(
            users.revokeTokens(UsersRevokeTokensRequest(tenantID: tenantID, uid: uid), options: options).user)
    }

    /// The live ones, the one used last first; at most 100.
    public func listSessions(_ uid: Text, options: CallOptions = .init()) async throws(Failure) -> [Session] {
        try await users.listSessions(UsersListSessionsRequest(tenantID: tenantID, uid: uid), options: options).sessions
    }

    /// SESSION_NOT_FOUND.
    public func revokeSession(
        _ sessionID: Text, of uid: Text, options: CallOptions = .init()
    ) async throws(Failure) {
        let request = UsersRevokeSessionRequest(tenantID: tenantID, uid: uid, sessionID: sessionID)
        _ = try await users.revokeSession(request, options: options)
    }
}
