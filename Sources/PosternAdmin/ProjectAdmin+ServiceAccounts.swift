public import Base
public import Messages
public import PosternClient

// MARK: - Service accounts

extension ProjectAdmin {
    /// It has no key yet. `role` unspecified: it only signs custom tokens. SERVICE_ACCOUNT_ID_EXISTS.
    @discardableResult
    public func createServiceAccount(
        _ serviceAccountID: Text = .empty, displayName: Text = .empty, role: Role = .unspecified,
        scope: Scope = Scope(tenants: .all(true)), customTokens: Bool = false, trustedEndUserIP: Bool = false,
        options: CallOptions = .init()
    ) async throws(Failure) -> ServiceAccount {
        let request = ProjectCreateServiceAccountRequest(
            serviceAccountID: serviceAccountID, displayName: displayName, role: role, scope: scope,
            customTokens: customTokens, trustedEndUserIP: trustedEndUserIP)
        return try await part(
            keyed(project.createServiceAccount, request, options).serviceAccount)
    }

    /// SERVICE_ACCOUNT_NOT_FOUND.
    public func getServiceAccount(
        _ serviceAccountID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> ServiceAccount {
        let request = ProjectGetServiceAccountRequest(serviceAccountID: serviceAccountID)
        return try await part(project.getServiceAccount(request, options: options).serviceAccount)
    }

    /// In the order of their ids.
    public func listServiceAccounts(pageSize: Int32 = 0, options: CallOptions = .init()) -> Listing<ServiceAccount> {
        Listing { [project] token throws(Failure) in
            let page = try await project.listServiceAccounts(
                ProjectListServiceAccountsRequest(pageSize: pageSize, pageToken: token), options: options)
            return (page.serviceAccounts, page.nextPageToken)
        }
    }

    @discardableResult
    public func updateServiceAccount(
        _ serviceAccountID: Text, _ change: ServiceAccountChange, options: CallOptions = .init()
    ) async throws(Failure) -> ServiceAccount {
        let fields = change.fields
        var request = fields.message
        request.serviceAccountID = serviceAccountID
        request.updateMask = fields.mask
        return try await part(project.updateServiceAccount(request, options: options).serviceAccount)
    }

    /// With its keys: whatever they signed is refused from now on.
    public func deleteServiceAccount(
        _ serviceAccountID: Text, options: CallOptions = .init()
    ) async throws(Failure) {
        let request = ProjectDeleteServiceAccountRequest(serviceAccountID: serviceAccountID)
        _ = try await keyed(project.deleteServiceAccount, request, options)
    }
}

// MARK: - Their keys

extension ProjectAdmin {
    /// The private key, as the JSON file that Admin SDKs read, is told only here. `algorithm` empty: RS256. `lifetime`
    /// nil: until it is revoked. ALREADY_DONE: made, and the answer got lost; revoke it and make another.
    public func createServiceAccountKey(
        of serviceAccountID: Text, algorithm: Text = .empty, lifetime: Duration? = nil, options: CallOptions = .init()
    ) async throws(Failure) -> (key: ServiceAccountKey, keyFileJSON: Secret) {
        let request = ProjectCreateServiceAccountKeyRequest(
            serviceAccountID: serviceAccountID, algorithm: algorithm, lifetimeSeconds: try wholeSeconds(lifetime))
        let made = try await keyed(project.createServiceAccountKey, request, options)
        return (try part(made.key), made.keyFileJSON)
    }

    /// `publicKey`: PEM "PUBLIC KEY" or a JWK.
    @discardableResult
    public func uploadServiceAccountKey(
        of serviceAccountID: Text, publicKey: [UInt8], lifetime: Duration? = nil, options: CallOptions = .init()
    ) async throws(Failure) -> ServiceAccountKey {
        let request = ProjectUploadServiceAccountKeyRequest(
            serviceAccountID: serviceAccountID, publicKey: publicKey, lifetimeSeconds: try wholeSeconds(lifetime))
        return try await part(keyed(project.uploadServiceAccountKey, request, options).key)
    }

    /// All of them, revoked ones too.
    public func listServiceAccountKeys(
        of serviceAccountID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> [ServiceAccountKey] {
        let request = ProjectListServiceAccountKeysRequest(serviceAccountID: serviceAccountID)
        return try await project.listServiceAccountKeys(request, options: options).keys
    }

    @discardableResult
    public func revokeServiceAccountKey(
        _ keyID: Text, of serviceAccountID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> ServiceAccountKey {
        let request = ProjectRevokeServiceAccountKeyRequest(serviceAccountID: serviceAccountID, keyID: keyID)
        return try await part(project.revokeServiceAccountKey(request, options: options).key)
    }
}
