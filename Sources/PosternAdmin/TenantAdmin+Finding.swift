public import Base
public import Messages
public import PosternClient

// MARK: - Finding users

extension TenantAdmin {
    /// Returns the user with a phone number in E.164 form. Throws INVALID_PHONE_NUMBER, USER_NOT_FOUND.
    public func getUserByPhoneNumber(_ number: Text, options: CallOptions = .init()) async throws(Failure) -> User {
        let request = UsersGetByPhoneRequest(tenantID: tenantID, phoneNumber: number)
        return try await required(users.getByPhone(request, options: options).user)
    }

    /// Returns the user with an identity of a provider. An empty issuer is the provider's present one.
    ///
    /// Throws INVALID_PROVIDER, INVALID_ISSUER, USER_NOT_FOUND.
    public func getUserByProvider(
        _ providerID: Text, rawID: Text, issuer: Text = .empty, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let identity = ProviderIdentity(providerID: providerID, rawID: rawID, issuer: issuer)
        let request = UsersGetByProviderRequest(tenantID: tenantID, identity: identity)
        return try await required(users.getByProvider(request, options: options).user)
    }

    /// Returns the users with these names, each once, and the names that belong to no user. At most 100 names of each
    /// kind.
    ///
    /// `notRead` holds the names that were not looked up because the answer was full. Ask for them again. Throws
    /// TOO_MANY_ITEMS.
    public func getUsers(
        _ names: [UserName], options: CallOptions = .init()
    ) async throws(Failure) -> (users: [User], notFound: [UserName], notRead: [UserName]) {
        var request = UsersBatchGetRequest(tenantID: tenantID)
        for name in names {
            switch name.name {
            case .uid(let uid): request.uids.append(uid)
            case .email(let email): request.emails.append(email)
            case .phoneNumber(let number): request.phoneNumbers.append(number)
            case .identity(let identity): request.identities.append(identity)
            case nil: break
            }
        }
        let answer = try await users.batchGet(request, options: options)
        return (answer.users, answer.notFound, answer.notRead)
    }

    /// Returns how many users the tenant has.
    public func countUsers(options: CallOptions = .init()) async throws(Failure) -> Int64 {
        try await users.count(UsersCountRequest(tenantID: tenantID), options: options).count
    }

    /// Finds the users that meet all conditions. `pageSize`: 1...1,000; 0 = 100.
    ///
    /// A condition without an index is checked user by user, so that a rare match takes many calls. Throws
    /// INVALID_QUERY.
    public func queryUsers(
        _ conditions: UserConditions, pageSize: Int32 = 0, options: CallOptions = .init()
    ) -> Listing<User> {
        Listing { [users, tenantID] token throws(Failure) in
            var request = conditions.request
            request.tenantID = tenantID
            request.pageSize = pageSize
            request.pageToken = token
            let page = try await users.query(request, options: options)
            return (page.users, page.nextPageToken)
        }
    }

    /// Changes all users that meet the conditions, as `updateUser` does. Nil means every user of the tenant.
    ///
    /// `claimsPatch` is a JSON object that is merged into the custom claims; null removes a claim. With `validateOnly`
    /// nothing is changed. Returns how many users were changed, and the users that could not be changed. A call that
    /// fails has changed the earlier users; it may be repeated. An idempotency key in the options is sent with a number
    /// behind it after the first page.
    public func updateUsers(
        where conditions: UserConditions?, disabled: Bool? = nil, claimsPatch: Text? = nil, revokeTokens: Bool = false,
        validateOnly: Bool = false, options: CallOptions = .init()
    ) async throws(Failure) -> (changedCount: Int64, rejections: [BatchRejection]) {
        var paths: [Text] = disabled == nil ? [] : ["disabled"]
        if claimsPatch != nil { paths.append("claims_patch_json") }
        if revokeTokens { paths.append("revoke_tokens") }
        var request = UsersUpdateManyRequest(
            tenantID: tenantID, pageSize: 500, query: conditions?.request, allUsers: conditions == nil,
            updateMask: ProtobufFieldMask(paths: paths), disabled: disabled ?? false,
            claimsPatchJSON: claimsPatch?.bytes ?? [], revokeTokens: revokeTokens, validateOnly: validateOnly)
        var (changedCount, rejections, callCount) = (Int64(0), [BatchRejection](), 0)
        repeat {
            callCount += 1
            let answer = try await users.updateMany(request, options: options.ofCall(callCount))
            changedCount += Int64(answer.changedCount)
            rejections += answer.rejections
            request.pageToken = answer.nextPageToken
        } while !request.pageToken.isEmpty
        return (changedCount, rejections)
    }
}
