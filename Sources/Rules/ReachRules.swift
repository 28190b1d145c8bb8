public import Base
public import Messages

/// Refuses a tenant's hosts when they are set, if every connection to them would be refused: addresses that are not
/// public, and names of this machine. What other names lead to is checked when a connection is made. Pure.
///
/// Settings from before these rules must not stop other changes. So callers check a host when it, or the allowance, is
/// changed.
public enum ReachRules {
    static let advice = "is not at a public address; a private one needs allow_private_addresses"

    /// Checks the URL of a webhook or hook. INVALID_WEBHOOK.
    public static func check(
        _ webhook: WebhookConfig?, allowPrivateAddresses: Bool, field: String = "config.webhook.url"
    ) throws(Failure) {
        guard let webhook, let url = HTTPURL(webhook.url) else { return }
        guard !url.isPlaintext || allowPrivateAddresses else {
            throw .invalid(
                .invalidWebhook, field: field,
                "must be https; http goes to this machine only, and needs allow_private_addresses")
        }
        guard NetworkPolicy.ownServers(allowPrivateAddresses: allowPrivateAddresses).mayReach(url) else {
            throw .invalid(.invalidWebhook, field: field, advice)
        }
    }

    /// Checks the host of a mail server. INVALID_SMTP_SERVER.
    static func check(_ smtp: SmtpConfig?, allowPrivateAddresses: Bool) throws(Failure) {
        guard let smtp else { return }
        guard smtp.mayHaveItsSecurity else {
            throw .invalid(.invalidSmtpServer, field: "config.smtp.host", SmtpConfig.clearTextAdvice.string)
        }
        let policy = NetworkPolicy.ownServers(allowPrivateAddresses: allowPrivateAddresses)
        guard policy.mayReach(smtp.host, isPlaintext: smtp.security == .none) else {
            throw .invalid(.invalidSmtpServer, field: "config.smtp.host", advice)
        }
    }

    /// Checks the URLs of a provider that the server itself calls. A browser opens the authorization endpoint, and may
    /// be in a private network. INVALID_ISSUER, INVALID_ENDPOINT.
    static func check(_ provider: Provider) throws(Failure) {
        let policy = provider.networkPolicy
        func isReached(_ text: Text) -> Bool { HTTPURL(text).map { policy.mayReach($0) } ?? true }
        guard isReached(ProviderRules.filledIssuer(of: provider)) else {
            throw .invalid(.invalidIssuer, field: "provider.issuer", advice)
        }
        for (name, url) in ProviderRules.endpointURLs(of: provider) where name != "authorization" && !isReached(url) {
            throw .invalid(.invalidEndpoint, field: "provider.endpoints.\(name)", advice)
        }
    }
}

extension SmtpConfig {
    /// False for clear text to a host that is not certainly this machine. Whoever has the DNS of a name could let it
    /// lead to this machine today and elsewhere tomorrow. Names that end in "localhost" are not looked up.
    public var mayHaveItsSecurity: Bool {
        security != .none || IPAddress.known(host)?.allSatisfy { $0.reach == .loopback } == true
    }

    public static let clearTextAdvice: Text =
        "mail goes without TLS to localhost or a loopback address only: change the host, or set security to starttls"
}

extension Provider {
    /// The addresses at which the server may call this provider.
    public var networkPolicy: NetworkPolicy {
        NetworkPolicy(allowsHTTPToLoopback: allowHTTPLoopback, allowsPrivateAddresses: allowPrivateAddresses)
    }
}
