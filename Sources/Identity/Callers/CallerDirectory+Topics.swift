public import Rules
public import Store

extension CallerDirectory {
    /// The topics of the rows that a caller was made from, for a stream that the caller began. Nil: no caller.
    public func topics(of caller: Caller?) -> [ChangeTopic] {
        guard let caller else { return [] }
        switch CredentialName(of: caller) {
        case .both(let shown, let mapped): return topics(of: shown) + topics(of: mapped)
        case .apiKey(let id): return [Tables.apiKeys.topic(of: TextKey(id))]
        case .serviceAccount(let id, let keyID):
            return [
                Tables.serviceAccounts.topic(of: TextKey(id)),
                Tables.serviceAccountKeys.topic(of: ServiceAccountKeyKey(id, keyID)),
            ]
        case .certificate(let id): return [Tables.certificateMappings.topic(of: TextKey(id))]
        }
    }
}
