public import Base
public import Messages
public import PosternClient

// MARK: - API keys

extension ProjectAdmin {
    /// The secret is told only here. ALREADY_DONE: the key was made and the answer with its secret got lost; revoke it
    /// and make another.
    public func createApiKey(
        role: Role, scope: Scope = Scope(tenants: .all(true)), displayName: Text = .empty,
        trustedEndUserIP: Bool = false, quotas: CallerQuotas? = nil, options: CallOptions = .init()
    ) async throws(Failure) -> (apiKey: ApiKey, secretKey: Secret) {
        let request = ProjectCreateApiKeyRequest(
            role: role, scope: scope, displayName: displayName, trustedEndUserIP: trustedEndUserIP, quotas: quotas)
        let made = try await keyed(project.createApiKey, request, options)
        return (try part(made.apiKey), made.secretKey)
    }

    public func listApiKeys(pageSize: Int32 = 0, options: CallOptions = .init()) -> Listing<ApiKey> {
        Listing { [project] token throws(Failure) in
            let page = try await project.listApiKeys(
                ProjectListApiKeysRequest(pageSize: pageSize, pageToken: token), options: options)
            return (page.apiKeys, page.nextPageToken)
        }
    }

    /// How much the key may use: binds the next request. API_KEY_NOT_FOUND, INVALID_QUOTA.
    @discardableResult
    public func setApiKeyQuotas(
        _ quotas: CallerQuotas, of apiKeyID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> ApiKey {
        let request = ProjectUpdateApiKeyRequest(
            apiKeyID: apiKeyID, updateMask: ProtobufFieldMask(paths: ["quotas"]), quotas: quotas)
        return try await part(project.updateApiKey(request, options: options).apiKey)
    }

    /// The key is refused from the next request on. API_KEY_NOT_FOUND, LAST_ADMIN_KEY.
    @discardableResult
    public func revokeApiKey(_ apiKeyID: Text, options: CallOptions = .init()) async throws(Failure) -> ApiKey {
        try await part(project.revokeApiKey(ProjectRevokeApiKeyRequest(apiKeyID: apiKeyID), options: options).apiKey)
    }
}

// MARK: - Signing keys

extension ProjectAdmin {
    public func listSigningKeys(options: CallOptions = .init()) async throws(Failure) -> [SigningKeyInfo] {
        try await project.listSigningKeys(ProjectListSigningKeysRequest(), options: options).keys
    }

    /// Makes a new signing key, published at once; it signs after `publishAhead`, which is how long verifiers are given
    /// to fetch it. `algorithm` empty: the present key's.
    @discardableResult
    public func rotateSigningKey(
        publishAhead: Duration, algorithm: Text = .empty, tokenUse: TokenUse = .idToken, options: CallOptions = .init()
    ) async throws(Failure) -> SigningKeyInfo {
        let request = ProjectRotateSigningKeyRequest(
            algorithm: algorithm, publishAheadSeconds: publishAhead.secondsRoundedUp, tokenUse: tokenUse)
        return try await part(keyed(project.rotateSigningKey, request, options).key)
    }

    /// Refuses every token that the key signed, at once: for a key whose private part somebody else may have. Returns
    /// the key, and the one that took its place if one had to. SIGNING_KEY_NOT_FOUND.
    @discardableResult
    public func revokeSigningKey(
        _ keyID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> (key: SigningKeyInfo, successor: SigningKeyInfo?) {
        let request = ProjectRevokeSigningKeyRequest(keyID: keyID)
        let answer = try await project.revokeSigningKey(request, options: options)
        return (try part(answer.key), answer.successor)
    }
}
