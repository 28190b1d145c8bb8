public import Base
public import Messages

/// The checks of a provider's configuration, each with its reason. Pure.
public enum ProviderRules {
    static let audiencesMax = 20
    static let domainsMax = 50
    static let clientIDByteCountMax = 512
    static let clientSecretByteCountMax = 4_096

    /// INVALID_PROVIDER_ID.
    public static func checkID(_ id: Text) throws(Failure) {
        guard KnownProvider(id) != nil else {
            throw .invalid(
                .invalidProviderID, field: "provider.provider_id",
                "must be google.com, apple.com, microsoft.com, yahoo.com, facebook.com, twitter.com, github.com, "
                    + "linkedin.com or oidc.<name>, the name of 1 to 32 characters of a-z, 0-9 and -")
        }
    }

    /// Checks a whole provider that is about to be stored.
    public static func check(_ provider: Provider, limits: Limits) throws(Failure) {
        try checkID(provider.providerID)
        try Values.checkDisplayName(provider.displayName, field: "provider.display_name", limits: limits)
        try checkClientID(provider.clientID, field: "provider.client_id")
        guard provider.additionalAudiences.count <= audiencesMax else {
            throw .invalid(
                .invalidClientID, field: "provider.additional_audiences", "must be at most \(audiencesMax)")
        }
        for audience in provider.additionalAudiences {
            try checkClientID(audience, field: "provider.additional_audiences")
        }
        try checkIssuer(provider)
        try checkEndpoints(provider)
        try checkTrust(provider.trust ?? ProviderTrust())
        try checkApple(provider)
    }

    /// Reads and checks a new client secret, which may be empty. INVALID_CLIENT_SECRET.
    public static func checkSecret(_ secret: Secret, of provider: Provider) throws(Failure) {
        try checkSecret(NewClientSecret(secret, of: provider.providerID), of: provider)
    }

    /// Checks a new client secret that was read before. Cheap, because it runs in the transaction.
    /// INVALID_CLIENT_SECRET.
    public static func checkSecret(_ secret: NewClientSecret, of provider: Provider) throws(Failure) {
        guard provider.apple == nil || secret.isEmpty || secret.isApplePrivateKey else {
            throw .invalid(
                .invalidClientSecret, field: "provider.client_secret",
                "must be the private key's PEM file, as Apple gives it out, when `apple` is set")
        }
        // Without `apple`, the secret itself is sent.
        guard provider.apple != nil || !secret.isApplePrivateKey else {
            throw .invalid(
                .invalidClientSecret, field: "provider.client_secret",
                "is Apple's private key, which must not be sent: set `apple`, or give a ready-made client secret")
        }
    }

    /// Checks a secret's length before anything is done with it. INVALID_CLIENT_SECRET.
    fileprivate static func checkSecretLength(_ secret: Secret) throws(Failure) {
        guard secret.byteCount <= clientSecretByteCountMax else {
            throw .invalid(
                .invalidClientSecret, field: "provider.client_secret",
                "must have at most \(clientSecretByteCountMax) bytes")
        }
    }

    /// Whether the client secret would be sent elsewhere.
    public static func sendsSecretElsewhere(_ old: Provider, _ new: Provider) -> Bool {
        old.issuer != new.issuer || endpoints(old) != endpoints(new) || old.allowHTTPLoopback != new.allowHTTPLoopback
            || old.allowPrivateAddresses != new.allowPrivateAddresses
    }

    /// Whether the client secret would become another kind of secret. With `apple` it is a private key, which is never
    /// sent; without `apple` the secret itself is sent.
    public static func changesKindOfSecret(_ old: Provider, _ new: Provider) -> Bool {
        (old.apple == nil) != (new.apple == nil)
    }

    /// Only the operator may allow requests into the operator's network: INSUFFICIENT_PERMISSION. Without that, a
    /// provider at an address of such a network is refused: INVALID_ISSUER, INVALID_ENDPOINT.
    public static func checkReach(_ new: Provider, isProjectAdmin: Bool) throws(Failure) {
        guard isProjectAdmin || !(new.allowHTTPLoopback || new.allowPrivateAddresses) else {
            throw .needsProjectAdmin(
                "allow_http_loopback and allow_private_addresses, and where such a provider is, are set by a "
                    + "project-admin.")
        }
        try ReachRules.check(new)
    }

    /// The issuer, with a directory's id where Microsoft's issuer names the user's directory: {tenantid}.
    static func filledIssuer(of provider: Provider) -> Text {
        guard provider.providerID == "microsoft.com" else { return provider.issuer }
        return URLTemplate.fill("{tenantid}", in: provider.issuer, with: "x")
    }

    /// The configured endpoints by the names of their fields; empty texts for those that are not set.
    static func endpointURLs(of provider: Provider) -> [(name: String, url: Text)] {
        let endpoints = endpoints(provider)
        return [
            ("discovery", endpoints.discovery), ("jwks", endpoints.jwks), ("token", endpoints.token),
            ("user_info", endpoints.userInfo),
            ("authorization", endpoints.authorization),
            ("token_check", URLTemplate.fill("{client_id}", in: endpoints.tokenCheck, with: "x")),
        ]
    }

    private static func endpoints(_ provider: Provider) -> ProviderEndpoints {
        provider.endpoints ?? ProviderEndpoints()
    }

    private static func checkClientID(_ id: Text, field: String) throws(Failure) {
        guard (1...clientIDByteCountMax).contains(id.byteCount), id.bytes.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw .invalid(
                .invalidClientID, field: field,
                "must have 1 to \(clientIDByteCountMax) characters of printable ASCII without spaces")
        }
    }

    private static func checkIssuer(_ provider: Provider) throws(Failure) {
        let field = "provider.issuer"
        guard !provider.issuer.isEmpty else {
            guard !provider.providerID.bytes.starts(with: "oidc.".utf8) else {
                throw .invalid(.invalidIssuer, field: field, "is required for oidc.* providers")
            }
            return
        }
        guard provider.issuer.byteCount <= HTTPURL.byteCountMax else {
            throw .invalid(.invalidIssuer, field: field, "must have at most \(HTTPURL.byteCountMax) bytes")
        }
        let text = filledIssuer(of: provider)
        guard isURL(text, provider), !text.bytes.contains(UInt8(ascii: "?")) else {
            throw .invalid(
                .invalidIssuer, field: field,
                "must be an https URL without query and fragment" + plaintextAdvice(text, provider))
        }
    }

    private static func checkEndpoints(_ provider: Provider) throws(Failure) {
        guard endpoints(provider).tokenCheck.byteCount <= HTTPURL.byteCountMax else {
            throw .invalid(
                .invalidEndpoint, field: "provider.endpoints.token_check",
                "must have at most \(HTTPURL.byteCountMax) bytes")
        }
        for (name, url) in endpointURLs(of: provider) where !url.isEmpty && !isURL(url, provider) {
            throw .invalid(
                .invalidEndpoint, field: "provider.endpoints.\(name)",
                "must be an https URL" + plaintextAdvice(url, provider))
        }
    }

    /// The advice that tells what would make an http URL acceptable.
    private static func plaintextAdvice(_ text: Text, _ provider: Provider) -> String {
        guard let url = HTTPURL(text), url.isPlaintext, !provider.allowHTTPLoopback else { return "" }
        return "; http is for a provider on this machine, with allow_http_loopback"
    }

    private static func isURL(_ text: Text, _ provider: Provider) -> Bool {
        guard let url = HTTPURL(text) else { return false }
        return !url.isPlaintext || provider.allowHTTPLoopback
    }

    private static func checkTrust(_ trust: ProviderTrust) throws(Failure) {
        guard trust.domains.isEmpty == (trust.level != .domains), trust.domains.count <= domainsMax else {
            throw .invalid(
                .invalidTrust, field: "provider.trust.domains",
                "must be 1 to \(domainsMax) with TRUST_LEVEL_DOMAINS and none otherwise")
        }
        guard trust.domains.allSatisfy(isDomain) else {
            throw .invalid(.invalidTrust, field: "provider.trust.domains", "must be domain names in lower case")
        }
        guard let claim = trust.requiredClaim else { return }
        guard (1...128).contains(claim.name.byteCount), (1...256).contains(claim.value.byteCount) else {
            throw .invalid(
                .invalidTrust, field: "provider.trust.required_claim",
                "needs a name (≤ 128) and a value (≤ 256 bytes)")
        }
    }

    private static func isDomain(_ domain: Text) -> Bool {
        guard domain.byteCount <= 253 else { return false }
        let labels = domain.bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return labels.count >= 2
            && labels.allSatisfy { label in
                (1...63).contains(label.count) && label.allSatisfy(\.isLowercaseLDH)
            }
    }

    private static func checkApple(_ provider: Provider) throws(Failure) {
        guard let apple = provider.apple else { return }
        let isName: (Text) -> Bool = { text in
            (1...64).contains(text.byteCount)
                && text.bytes.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit }
        }
        guard provider.providerID == "apple.com", isName(apple.teamID), isName(apple.keyID) else {
            throw .invalid(
                .invalidAppleKey, field: "provider.apple", "needs team_id and key_id, and is for apple.com only")
        }
    }
}

/// The properties of a new client secret that the rules judge. They are read before the transaction that checks them:
/// all other writes would wait while a key is read.
public struct NewClientSecret: Sendable {
    let isEmpty: Bool
    /// Whether the secret is a private key as Apple gives it out. False for other providers, which have no such key.
    let isApplePrivateKey: Bool

    /// INVALID_CLIENT_SECRET for a secret that is too long.
    public init(_ secret: Secret, of providerID: Text) throws(Failure) {
        try ProviderRules.checkSecretLength(secret)
        isEmpty = secret.isEmpty
        isApplePrivateKey = providerID == "apple.com" && ApplePrivateKey.read(secret) != nil
    }
}
