import Base
import JSON
import Messages
import Outbound
import Rules

/// Checks whether an access token was issued to this client. Without the check, the operator of any other application
/// could sign in here with the tokens of its users (RFC 6819 §4.6.4, the confused deputy).
struct TokenBinding: Sendable {
    let requests: ProviderRequests
    let metadata: ProviderMetadata

    /// Returns the user to whom the token belongs, if the provider says so. Throws `otherClient`, `rejected`, or
    /// `unboundToken` if the client cannot be found out and the configuration does not accept that.
    func check(_ token: Secret, _ call: ProviderCall) async throws -> Text? {
        let configuration = call.configuration
        guard let request = try await request(for: token, call) else {
            guard configuration.provider.acceptUnboundAccessTokens else { throw FederationError.unboundToken }
            return nil
        }
        switch configuration.known.tokenCheck {
        case .none: throw FederationError.unboundToken
        case .googleTokenInfo: return try await google(request, call)
        case .facebookDebug: return try await facebook(request, call)
        case .gitHubApplication: return try await gitHub(request, call)
        case .introspection: return try await introspect(request, call)
        }
    }

    /// The request that asks to which client a token was issued. Nil if the provider has no way to tell, or if its way
    /// needs a client secret and there is none.
    func request(for token: Secret, _ call: ProviderCall) async throws -> HTTPRequest? {
        let configuration = call.configuration
        guard let endpoint = try await endpoint(for: call) else { return nil }
        let url = try configuration.url(endpoint)
        switch configuration.known.tokenCheck {
        case .none: return nil
        case .googleTokenInfo:
            return HTTPRequest.form(
                url, [("access_token", token)], fields: [ProviderRequests.json], policy: configuration.policy)
        case .facebookDebug: return try facebookRequest(url, token, configuration)
        case .gitHubApplication: return try gitHubRequest(url, token, configuration)
        case .introspection:
            let authentication = try await metadata.clientAuthentication(of: configuration, now: call.now) {
                $0.acceptsPostedSecretsForIntrospection
            }
            let secret = try configuration.clientSecret
            return ProviderRequests.form(url, [("token", token)], from: configuration, secret, by: authentication)
        }
    }

    private func endpoint(for call: ProviderCall) async throws -> Text? {
        let configuration = call.configuration
        let kind = configuration.known.tokenCheck
        if kind == .none { return nil }
        if kind == .introspection && !configuration.hasClientSecret { return nil }
        let configured = configuration.endpoints.tokenCheck
        if !configured.isEmpty {
            return URLTemplate.fill(
                "{client_id}", in: configured,
                with: Text(unchecked: PercentEncoding.encode(configuration.provider.clientID)))
        }
        guard kind == .introspection, configuration.discoveryURL != nil else { return nil }
        let discovered = try await metadata.document(of: configuration, now: call.now).introspection
        return discovered.isEmpty ? nil : discovered
    }

    /// developers.google.com/identity/protocols/oauth2: `aud` is the client, `sub` the user.
    private func google(_ request: HTTPRequest, _ call: ProviderCall) async throws -> Text? {
        let configuration = call.configuration
        return try await requests.object(request, for: call) { answer -> Text? in
            guard let audience = answer["aud"]?.text, configuration.audiences.contains(audience) else {
                throw FederationError.otherClient
            }
            return answer["sub"]?.text
        }
    }

    /// developers.facebook.com/docs/facebook-login/guides/access-tokens/debugging, with the app's own access token.
    private func facebookRequest(
        _ url: HTTPURL, _ token: Secret, _ configuration: ProviderConfiguration
    ) throws -> HTTPRequest {
        guard configuration.hasClientSecret else { throw FederationError.misconfigured(.noClientSecret) }
        let appToken = try configuration.clientSecret.withBytes {
            Secret(configuration.provider.clientID.bytes + [UInt8(ascii: "|")] + [UInt8]($0))
        }
        guard let full = url.with(query: "input_token", try ProviderRequests.text(of: token)) else {
            throw FederationError.rejected
        }
        return HTTPRequest(
            full, fields: [ProviderRequests.json, try ProviderRequests.bearer(appToken)], policy: configuration.policy)
    }

    private func facebook(_ request: HTTPRequest, _ call: ProviderCall) async throws -> Text? {
        let (configuration, now) = (call.configuration, call.now)
        return try await requests.object(request, for: call) { answer -> Text? in
            guard let data = answer["data"], data["is_valid"] == true else { throw FederationError.rejected }
            let application = try UserInfo.subject(data["app_id"])
            guard configuration.audiences.contains(application) else { throw FederationError.otherClient }
            // 0 is "never".
            if let expiresAt = data["expires_at"]?.integer, expiresAt > 0, Timestamp(seconds: expiresAt) <= now {
                throw FederationError.rejected
            }
            return try UserInfo.subject(data["user_id"])
        }
    }

    /// docs.github.com/rest/apps/oauth-applications#check-a-token: 404 for a token of another application.
    private func gitHubRequest(
        _ url: HTTPURL, _ token: Secret, _ configuration: ProviderConfiguration
    ) throws -> HTTPRequest {
        guard configuration.hasClientSecret else { throw FederationError.misconfigured(.noClientSecret) }
        var body = JSONWriter()
        body.beginObject()
        body.member("access_token", text: try ProviderRequests.text(of: token))
        body.endObject()
        return HTTPRequest(
            url, method: .post(Secret(body.bytes)),
            fields: [
                ProviderRequests.json, HTTPRequest.Field("Content-Type", "application/json"),
                ProviderRequests.basic(configuration.provider.clientID, try configuration.clientSecret),
            ], policy: configuration.policy)
    }

    private func gitHub(_ request: HTTPRequest, _ call: ProviderCall) async throws -> Text? {
        try await requests.send(request, for: call) { answer -> Text? in
            switch answer.status {
            case 401: throw FederationError.misconfigured(.clientRefused)
            case 404, 422: throw FederationError.otherClient
            default: return try UserInfo.subject(try ProviderRequests.object(answer)["user"]?["id"])
            }
        }
    }

    /// Whether an endpoint that asks for the client's credentials does not take them: RFC 6749 §5.2, which allows the
    /// status 400 as well.
    static func refusesClient(_ answer: HTTPAnswer) -> Bool {
        if answer.status == 401 { return true }
        guard (400...499).contains(answer.status), let body = try? JSONValue(parsing: answer.body) else { return false }
        return TokenAnswer.refusesClient(body)
    }

    /// RFC 7662.
    private func introspect(_ request: HTTPRequest, _ call: ProviderCall) async throws -> Text? {
        let configuration = call.configuration
        return try await requests.send(request, for: call) { answer -> Text? in
            if Self.refusesClient(answer) { throw FederationError.misconfigured(.clientRefused) }
            let said = try ProviderRequests.object(answer)
            guard said["active"] == true else { throw FederationError.rejected }
            guard let client = said["client_id"]?.text, configuration.audiences.contains(client) else {
                throw FederationError.otherClient
            }
            return said["sub"]?.text
        }
    }
}
