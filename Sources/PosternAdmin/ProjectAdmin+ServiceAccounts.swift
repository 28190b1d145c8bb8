public import Base
public import Messages
public import PosternClient

// MARK: - Service accounts

extension ProjectAdmin {
    /// Creates a service account without a key.
    ///
    /// `serviceAccountID` empty: the server makes one. With the role `.unspecified` the account may call nothing; it
    /// can still sign custom tokens. Throws SERVICE_ACCOUNT_ID_EXISTS, INVALID_SERVICE_ACCOUNT_ID.
    @discardableResult
    public func createServiceAccount(
        _ serviceAccountID: Text = .empty, displayName: Text = .empty, role: Role = .unspecified,
        scope: Scope = Scope(tenants: .all(true)), customTokens: Bool = false, trustedEndUserIP: Bool = false,
        options: CallOptions = .init()
    ) async throws(Failure) -> ServiceAccount {
        let request = ProjectCreateServiceAccountRequest(
            serviceAccountID: serviceAccountID, displayName: displayName, role: role, scope: scope,
            customTokens: customTokens, trustedEndUserIP: trustedEndUserIP)
        return try await required(
            sendOnce(project.createServiceAccount, request, options).serviceAccount)
    }

    /// Returns a service account. Throws SERVICE_ACCOUNT_NOT_FOUND.
    public func getServiceAccount(
        _ serviceAccountID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> ServiceAccount {
        let request = ProjectGetServiceAccountRequest(serviceAccountID: serviceAccountID)
        return try await required(project.getServiceAccount(request, options: options).serviceAccount)
    }

    /// Lists the service accounts in the order of their ids. `pageSize`: 1...1,000; 0 = 100.
    public func listServiceAccounts(pageSize: Int32 = 0, options: CallOptions = .init()) -> Listing<ServiceAccount> {
        Listing { [project] token throws(Failure) in
            let page = try await project.listServiceAccounts(
                ProjectListServiceAccountsRequest(pageSize: pageSize, pageToken: token), options: options)
            return (page.serviceAccounts, page.nextPageToken)
        }
    }

    /// Changes a service account. The change holds from the next request on.
    ///
    /// Throws SERVICE_ACCOUNT_NOT_FOUND, BUILT_IN_SERVICE_ACCOUNT, and INVALID_UPDATE_MASK for an empty change.
    @discardableResult
    public func updateServiceAccount(
        _ serviceAccountID: Text, _ change: ServiceAccountChange, options: CallOptions = .init()
    ) async throws(Failure) -> ServiceAccount {
        let fields = change.fields
        var request = fields.message
        request.serviceAccountID = serviceAccountID
        request.updateMask = fields.mask
        return try await required(project.updateServiceAccount(request, options: options).serviceAccount)
    }

    /// Deletes a service account with its keys: everything that the keys signed is refused from now on.
    ///
    /// Throws SERVICE_ACCOUNT_NOT_FOUND, BUILT_IN_SERVICE_ACCOUNT.
    public func deleteServiceAccount(
        _ serviceAccountID: Text, options: CallOptions = .init()
    ) async throws(Failure) {
        let request = ProjectDeleteServiceAccountRequest(serviceAccountID: serviceAccountID)
        _ = try await sendOnce(project.deleteServiceAccount, request, options)
    }
}

// MARK: - Their keys

extension ProjectAdmin {
    /// Creates a key pair of a service account. The answer is the only place where the private key appears, as the JSON
    /// file that Admin SDKs read.
    ///
    /// `algorithm` empty: RS256. `lifetime` nil: until the key is revoked. Throws TOO_MANY_SERVICE_ACCOUNT_KEYS, and
    /// ALREADY_DONE when the key was created and the answer got lost: revoke that key and create another.
    public func createServiceAccountKey(
        of serviceAccountID: Text, algorithm: Text = .empty, lifetime: Duration? = nil, options: CallOptions = .init()
    ) async throws(Failure) -> (key: ServiceAccountKey, keyFileJSON: Secret) {
        let request = ProjectCreateServiceAccountKeyRequest(
            serviceAccountID: serviceAccountID, algorithm: algorithm, lifetimeSeconds: try wholeSeconds(lifetime))
        let made = try await sendOnce(project.createServiceAccountKey, request, options)
        return (try required(made.key), made.keyFileJSON)
    }

    /// Adds a key whose private part stays elsewhere. `publicKey` is a PEM "PUBLIC KEY" or a JWK.
    ///
    /// `lifetime` nil: until the key is revoked. Throws INVALID_PUBLIC_KEY, SERVICE_ACCOUNT_KEY_EXISTS,
    /// TOO_MANY_SERVICE_ACCOUNT_KEYS.
    @discardableResult
    public func uploadServiceAccountKey(
        of serviceAccountID: Text, publicKey: [UInt8], lifetime: Duration? = nil, options: CallOptions = .init()
    ) async throws(Failure) -> ServiceAccountKey {
        let request = ProjectUploadServiceAccountKeyRequest(
            serviceAccountID: serviceAccountID, publicKey: publicKey, lifetimeSeconds: try wholeSeconds(lifetime))
        return try await required(sendOnce(project.uploadServiceAccountKey, request, options).key)
    }

    /// Lists the keys of a service account, revoked ones too. Throws SERVICE_ACCOUNT_NOT_FOUND.
    public func listServiceAccountKeys(
        of serviceAccountID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> [ServiceAccountKey] {
        let request = ProjectListServiceAccountKeysRequest(serviceAccountID: serviceAccountID)
        return try await project.listServiceAccountKeys(request, options: options).keys
    }

    /// Revokes a key of a service account: everything that it signed is refused from now on.
    ///
    /// Throws SERVICE_ACCOUNT_KEY_NOT_FOUND.
    @discardableResult
    public func revokeServiceAccountKey(
        _ keyID: Text, of serviceAccountID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> ServiceAccountKey {
        let request = ProjectRevokeServiceAccountKeyRequest(serviceAccountID: serviceAccountID, keyID: keyID)
        return try await required(project.revokeServiceAccountKey(request, options: options).key)
    }
}
