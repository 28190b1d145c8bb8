public import Base
public import Messages
public import PosternClient

// MARK: - API keys

extension ProjectAdmin {
    /// Creates an API key. The answer is the only place where its secret appears.
    ///
    /// `exportPasswordHashes`: the key may export password hashes (`TenantAdmin.exportUsers`). `allowedAddresses`: the
    /// networks from which the key may be used, such as `192.0.2.0/24`; empty: any network.
    /// Throws ALREADY_DONE when the key was created and the answer with its secret got lost: revoke that key and create
    /// another.
    public func createApiKey(
        role: Role, scope: Scope = Scope(tenants: .all(true)), displayName: Text = .empty,
        trustedEndUserIP: Bool = false, exportPasswordHashes: Bool = false, quotas: CallerQuotas? = nil,
        expiresAt: Timestamp? = nil, allowedAddresses: [Text] = [], options: CallOptions = .init()
    ) async throws(Failure) -> (apiKey: ApiKey, secretKey: Secret) {
        let request = ProjectCreateApiKeyRequest(
            role: role, scope: scope, displayName: displayName, trustedEndUserIP: trustedEndUserIP, quotas: quotas,
            exportPasswordHashes: exportPasswordHashes, expiresAtMicros: expiresAt?.microseconds ?? 0,
            allowedAddresses: allowedAddresses)
        let made = try await sendOnce(project.createApiKey, request, options)
        return (try required(made.apiKey), made.secretKey)
    }

    /// Lists the API keys, revoked ones too, without their secrets.
    public func listApiKeys(pageSize: Int32 = 0, options: CallOptions = .init()) -> Listing<ApiKey> {
        Listing { [project] token throws(Failure) in
            let page = try await project.listApiKeys(
                ProjectListApiKeysRequest(pageSize: pageSize, pageToken: token), options: options)
            return (page.apiKeys, page.nextPageToken)
        }
    }

    /// Sets all quotas of a key together: a quota that is 0 takes the default of the role. They hold from the next
    /// request on. The key no longer uses up the quotas of another credential (`quotaOwnerID`).
    ///
    /// Throws API_KEY_NOT_FOUND, INVALID_QUOTA.
    @discardableResult
    public func setApiKeyQuotas(
        _ quotas: CallerQuotas, of apiKeyID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> ApiKey {
        let request = ProjectUpdateApiKeyRequest(
            apiKeyID: apiKeyID, updateMask: ProtobufFieldMask(paths: ["quotas"]), quotas: quotas)
        return try await required(project.updateApiKey(request, options: options).apiKey)
    }

    /// Sets single quotas of a key; nil leaves a quota as it is, and 0 gives it the default of the role. The key no
    /// longer uses up the quotas of another credential.
    ///
    /// Throws API_KEY_NOT_FOUND, INVALID_QUOTA, and INVALID_UPDATE_MASK if all are nil.
    @discardableResult
    public func updateApiKeyQuotas(
        of apiKeyID: Text, mutationsPerSecond: Int64? = nil, writtenBytesPerHour: Int64? = nil,
        smsPerHour: Int64? = nil, options: CallOptions = .init()
    ) async throws(Failure) -> ApiKey {
        var fields = MaskedFields<ProjectUpdateApiKeyRequest>()
        fields.set(.quotasMutationsPerSecond, \.presentQuotas.mutationsPerSecond, mutationsPerSecond)
        fields.set(.quotasWrittenBytesPerHour, \.presentQuotas.writtenBytesPerHour, writtenBytesPerHour)
        fields.set(.quotasSMSPerHour, \.presentQuotas.smsPerHour, smsPerHour)
        var request = fields.message
        request.apiKeyID = apiKeyID
        request.updateMask = fields.mask
        return try await required(project.updateApiKey(request, options: options).apiKey)
    }

    /// Gives a key a new secret. The old secret stays valid for `overlap`, up to 30 days. The answer is the only place
    /// where the new secret appears.
    ///
    /// Throws API_KEY_NOT_FOUND, API_KEY_REVOKED, INVALID_DURATION.
    public func rotateApiKey(
        _ apiKeyID: Text, overlap: Duration, options: CallOptions = .init()
    ) async throws(Failure) -> (apiKey: ApiKey, secretKey: Secret) {
        let request = ProjectRotateApiKeyRequest(apiKeyID: apiKeyID, overlapSeconds: overlap.secondsRoundedUp)
        let made = try await sendOnce(project.rotateApiKey, request, options)
        return (try required(made.apiKey), made.secretKey)
    }

    /// Ends a rotated key's old secret at once. The present secret stays good.
    ///
    /// Throws API_KEY_NOT_FOUND.
    @discardableResult
    public func endPreviousSecret(of apiKeyID: Text, options: CallOptions = .init()) async throws(Failure) -> ApiKey {
        let request = ProjectUpdateApiKeyRequest(
            apiKeyID: apiKeyID, updateMask: ProtobufFieldMask(paths: ["previous_secret_until_micros"]))
        return try await required(project.updateApiKey(request, options: options).apiKey)
    }

    /// Revokes a key: the server refuses it from the next request on.
    ///
    /// Throws API_KEY_NOT_FOUND, and LAST_ADMIN_KEY for the last key of a project-admin.
    @discardableResult
    public func revokeApiKey(_ apiKeyID: Text, options: CallOptions = .init()) async throws(Failure) -> ApiKey {
        try await required(
            project.revokeApiKey(ProjectRevokeApiKeyRequest(apiKeyID: apiKeyID), options: options).apiKey)
    }
}

extension ProjectUpdateApiKeyRequest {
    /// `quotas`, which are not there while none is set.
    fileprivate var presentQuotas: CallerQuotas {
        get { quotas ?? CallerQuotas() }
        set { quotas = newValue }
    }
}

// MARK: - Signing keys

extension ProjectAdmin {
    /// Lists the keys that sign tokens, without their private parts.
    public func listSigningKeys(options: CallOptions = .init()) async throws(Failure) -> [SigningKeyInfo] {
        try await project.listSigningKeys(ProjectListSigningKeysRequest(), options: options).keys
    }

    /// Creates a signing key and publishes it at once. The key signs after `publishAhead`, the time that verifiers have
    /// to fetch it.
    ///
    /// `algorithm` empty: that of the present key. Throws INVALID_ALGORITHM, INVALID_DURATION.
    @discardableResult
    public func rotateSigningKey(
        publishAhead: Duration, algorithm: Text = .empty, tokenUse: TokenUse = .idToken, options: CallOptions = .init()
    ) async throws(Failure) -> SigningKeyInfo {
        let request = ProjectRotateSigningKeyRequest(
            algorithm: algorithm, publishAheadSeconds: publishAhead.secondsRoundedUp, tokenUse: tokenUse)
        return try await required(sendOnce(project.rotateSigningKey, request, options).key)
    }

    /// Revokes a signing key: every token that it signed is refused at once. Use it when somebody else may know the
    /// private part.
    ///
    /// Returns the key, and the key that took its place if the revoked one was in use. Throws SIGNING_KEY_NOT_FOUND.
    @discardableResult
    public func revokeSigningKey(
        _ keyID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> (key: SigningKeyInfo, successor: SigningKeyInfo?) {
        let request = ProjectRevokeSigningKeyRequest(keyID: keyID)
        let answer = try await project.revokeSigningKey(request, options: options)
        return (try required(answer.key), answer.successor)
    }
}
