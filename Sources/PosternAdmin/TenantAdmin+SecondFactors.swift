public import Base
public import Messages
public import PosternClient

// MARK: - Second factors

extension TenantAdmin {
    /// Returns the user's second factors. Throws USER_NOT_FOUND.
    public func secondFactors(of uid: Text, options: CallOptions = .init()) async throws(Failure) -> [SecondFactor] {
        try await getUser(uid, options: options).secondFactors
    }

    /// Gives a user a phone number as a second factor, and returns the factor. The number counts as verified: nothing
    /// is sent to it.
    ///
    /// Throws USER_NOT_FOUND, INVALID_PHONE_NUMBER, UNVERIFIED_EMAIL, SECOND_FACTOR_EXISTS,
    /// SECOND_FACTOR_LIMIT_EXCEEDED.
    @discardableResult
    public func addSecondFactor(
        phoneNumber: Text, displayName: Text = .empty, to uid: Text, options: CallOptions = .init()
    ) async throws(Failure) -> SecondFactor {
        let request = UsersAddSecondFactorRequest(
            tenantID: tenantID, uid: uid, phoneNumber: phoneNumber, displayName: displayName)
        let response = try await sendOnce(users.addSecondFactor, request, options)
        return try required(response.user?.secondFactors.first { $0.factorID == response.factorID })
    }

    /// Removes a second factor, for example of a user who lost the phone, and ends the sessions that ever showed it.
    /// Recovery codes become void if whoever has the factor may have made them. Removing the last one removes the
    /// recovery codes in any case, and ends all sessions that showed a factor or a recovery code.
    ///
    /// Throws USER_NOT_FOUND, MFA_ENROLLMENT_NOT_FOUND.
    @discardableResult
    public func removeSecondFactor(
        _ factorID: Text, from uid: Text, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let request = UsersRemoveSecondFactorRequest(tenantID: tenantID, uid: uid, factorID: factorID)
        return try await required(sendOnce(users.removeSecondFactor, request, options).user)
    }

    /// Removes all second factors of a user, with the recovery codes, and ends the sessions that showed one of them.
    /// Throws USER_NOT_FOUND.
    @discardableResult
    public func removeAllSecondFactors(
        from uid: Text, options: CallOptions = .init()
    ) async throws(Failure) -> User {
        let request = UsersRemoveSecondFactorRequest(tenantID: tenantID, uid: uid, all: true)
        return try await required(sendOnce(users.removeSecondFactor, request, options).user)
    }

    /// Changes the tenant's settings, and then ends every session that did not show a second factor. Returns how many.
    ///
    /// When second factors become mandatory, older sessions would otherwise go on until their user signs in again.
    /// Throws what `updateSettings` throws.
    public func updateSettingsEndingSessionsWithoutSecondFactor(
        _ change: TenantSettingsChange, options: CallOptions = .init()
    ) async throws(Failure) -> (settings: Tenant, endedSessionCount: Int64) {
        let fields = change.fields
        let request = TenantsUpdateRequest(
            tenantID: tenantID, tenant: fields.message, updateMask: fields.mask, endSessionsWithoutSecondFactor: true)
        let response = try await sendOnce(tenants.update, request, options)
        return (try required(response.tenant), response.endedSessionCount)
    }
}
