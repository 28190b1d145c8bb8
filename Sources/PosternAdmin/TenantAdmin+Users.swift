public import Base
public import Messages
public import PosternClient

// MARK: - Users

extension TenantAdmin {
    /// Creates a user. `uid` empty: the server makes one. Limits: `User`'s fields.
    ///
    /// Throws INVALID_EMAIL, WEAK_PASSWORD, INVALID_PHONE_NUMBER, DUPLICATE_LOCAL_ID, EMAIL_EXISTS,
    /// PHONE_NUMBER_EXISTS.
    @discardableResult
    public func createUser(
        uid: Text = .empty, email: Text = .empty, emailVerified: Bool = false, password: Secret = .empty,
        displayName: Text = .empty, photoURL: Text = .empty, phoneNumber: Text = .empty, disabled: Bool = false,
        options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let request = UsersCreateRequest(
            tenantID: tenantID, uid: uid, email: email, emailVerified: emailVerified, password: password,
            displayName: displayName, photoURL: photoURL, phoneNumber: phoneNumber, disabled: disabled)
        return try await required(sendOnce(users.create, request, options).user)
    }

    /// Returns a user. `lastRefreshAtMicros` is filled only with `includingLastRefresh`.
    ///
    /// Throws USER_NOT_FOUND, as every method about one user does.
    public func getUser(
        _ uid: Text, includingLastRefresh: Bool = false, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let request = UsersGetRequest(tenantID: tenantID, uid: uid, includeLastRefresh: includingLastRefresh)
        return try await required(users.get(request, options: options).user)
    }

    /// Returns the user with an email. Throws USER_NOT_FOUND.
    public func getUserByEmail(_ email: Text, options: CallOptions = .init()) async throws(Failure) -> User {
        try await required(
            users.getByEmail(UsersGetByEmailRequest(tenantID: tenantID, email: email), options: options).user)
    }

    /// Lists the users in the order of their uids' bytes. `pageSize`: 1...1,000; 0 = 100.
    public func listUsers(pageSize: Int32 = 0, options: CallOptions = .init()) -> Listing<User> {
        Listing { [users, tenantID] token throws(Failure) in
            let page = try await users.list(
                UsersListRequest(tenantID: tenantID, pageSize: pageSize, pageToken: token), options: options)
            return (page.users, page.nextPageToken)
        }
    }

    /// Changes a user, all properties at once. A new password, a new email, `disabled = true` and `revokeTokens` end
    /// the user's sessions.
    ///
    /// Throws what `createUser`, `setCustomUserClaims`, `linkProvider` and `unlinkProvider` throw, and
    /// INVALID_UPDATE_MASK for an empty change.
    @discardableResult
    public func updateUser(
        _ uid: Text, _ change: UserChange, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let fields = change.fields
        var request = fields.message
        request.tenantID = tenantID
        request.uid = uid
        request.updateMask = fields.mask
        return try await required(sendOnce(users.update, request, options).user)
    }

    /// Replaces the user's custom claims. `json` is an object of at most 1,000 bytes; empty removes the claims. ID
    /// tokens that are issued from now on hold them.
    ///
    /// Throws CLAIMS_TOO_LARGE, INVALID_CLAIMS, FORBIDDEN_CLAIM.
    @discardableResult
    public func setCustomUserClaims(
        _ uid: Text, json: Text, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let request = UsersSetCustomClaimsRequest(tenantID: tenantID, uid: uid, customClaimsJSON: json.bytes)
        return try await required(users.setCustomClaims(request, options: options).user)
    }

    /// Deletes a user with all its sessions.
    public func deleteUser(_ uid: Text, options: CallOptions = .init()) async throws(Failure) {
        let request = UsersDeleteRequest(tenantID: tenantID, uid: uid)
        _ = try await sendOnce(users.delete, request, options)
    }
}

extension TenantAdmin {
    /// Deletes users with all their sessions, at most 1,000. Users that are not disabled are deleted only with `force`.
    ///
    /// Returns how many were deleted, and why the others were not. Throws TOO_MANY_ITEMS.
    @discardableResult
    public func deleteUsers(
        _ uids: [Text], force: Bool = false, options: CallOptions = .init()
    ) async throws(Failure) -> (deletedCount: Int, rejections: [BatchRejection]) {
        let request = UsersBatchDeleteRequest(tenantID: tenantID, uids: uids, force: force)
        let answer = try await users.batchDelete(request, options: options)
        return (Int(answer.deletedCount), answer.rejections)
    }
}

// MARK: - Sessions

extension TenantAdmin {
    /// Ends all sessions of a user. Refresh tokens and ID tokens that were issued until now are refused.
    @discardableResult
    public func revokeRefreshTokens(_ uid: Text, options: CallOptions = .init()) async throws(Failure) -> User {
        try await required(
            users.revokeTokens(UsersRevokeTokensRequest(tenantID: tenantID, uid: uid), options: options).user)
    }

    /// Lists the user's live sessions, the last used one first. At most 100.
    public func listSessions(_ uid: Text, options: CallOptions = .init()) async throws(Failure) -> [Session] {
        try await users.listSessions(UsersListSessionsRequest(tenantID: tenantID, uid: uid), options: options).sessions
    }

    /// Ends one session of a user. Throws SESSION_NOT_FOUND.
    public func revokeSession(
        _ sessionID: Text, of uid: Text, options: CallOptions = .init()
    ) async throws(Failure) {
        let request = UsersRevokeSessionRequest(tenantID: tenantID, uid: uid, sessionID: sessionID)
        _ = try await users.revokeSession(request, options: options)
    }
}
