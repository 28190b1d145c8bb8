import Base
import Crypto
import JSON
import Messages
import Outbound
import Rules

/// Fetches the profile of an access token's user. `TokenBinding` checks whether the token was issued to this client.
struct UserInfo: Sendable {
    let requests: ProviderRequests
    let metadata: ProviderMetadata

    private struct GitHubEmail: Sendable {
        let address: Text
        let isVerified: Bool
    }

    /// The profile. Of the claims, it has only those that the configuration's trust looks at.
    func profile(_ token: Secret, _ call: ProviderCall) async throws -> ProviderProfile {
        let url = try call.configuration.url(try await endpoint(for: call))
        switch call.configuration.known.userInfoShape {
        case .oidc: return try await ask(url, token, call) { try ProviderProfile(openID: $0) }
        case .facebook: return try await facebook(url, token, call)
        case .gitHub: return try await gitHub(url, token, call)
        case .twitter: return try await twitter(url, token, call)
        }
    }

    func endpoint(for call: ProviderCall) async throws -> Text {
        let configuration = call.configuration
        if !configuration.endpoints.userInfo.isEmpty { return configuration.endpoints.userInfo }
        // If a known provider has no such endpoint, there is none to discover, unless the issuer is another.
        guard configuration.known.issuer.isEmpty || !configuration.provider.issuer.isEmpty else {
            throw FederationError.misconfigured(.noUserInfoEndpoint)
        }
        let discovered = try await metadata.document(of: configuration, now: call.now).userInfo
        guard !discovered.isEmpty else { throw FederationError.misconfigured(.noUserInfoEndpoint) }
        return discovered
    }

    private func ask(
        _ url: HTTPURL, _ token: Secret, _ call: ProviderCall,
        _ read: @escaping @Sendable (JSONValue) throws -> ProviderProfile
    ) async throws -> ProviderProfile {
        let configuration = call.configuration
        let request = HTTPRequest(
            url, fields: [ProviderRequests.json, try ProviderRequests.bearer(token)], policy: configuration.policy)
        return try await requests.object(request, for: call) { claims -> ProviderProfile in
            var profile = try read(claims)
            profile.claims = configuration.trust.claimsInUse(of: profile.claims)
            return profile
        }
    }

    /// developers.facebook.com/docs/graph-api/guides/secure-requests: the proof shows that the caller has the secret.
    private func facebook(_ url: HTTPURL, _ token: Secret, _ call: ProviderCall) async throws -> ProviderProfile {
        let proof = HMACKey(try call.configuration.clientSecret).tag(of: try ProviderRequests.text(of: token).bytes)
        let withFields = url.with(query: "fields", "id,name,email,picture")
        guard let full = withFields?.with(query: "appsecret_proof", Hex.encode(proof)) else {
            throw FederationError.misconfigured(.badEndpoint)
        }
        return try await ask(full, token, call) { claims in
            var profile = ProviderProfile(subject: try Self.subject(claims["id"]), claims: claims)
            profile.email = claims["email"]?.text ?? .empty
            profile.displayName = claims["name"]?.text ?? .empty
            profile.photoURL = claims["picture"]?["data"]?["url"]?.text ?? .empty
            return profile
        }
    }

    /// docs.github.com/rest/users/emails: the profile's email is the one that its owner shows, verified or not. Only
    /// the list tells whether an email is verified, and a token without the scope user:email gets no list.
    private func gitHub(_ url: HTTPURL, _ token: Secret, _ call: ProviderCall) async throws -> ProviderProfile {
        var profile = try await ask(url, token, call) { claims in
            var profile = ProviderProfile(subject: try Self.subject(claims["id"]), claims: claims)
            profile.displayName = claims["name"]?.text ?? claims["login"]?.text ?? .empty
            profile.photoURL = claims["avatar_url"]?.text ?? .empty
            profile.email = claims["email"]?.text ?? .empty
            profile.isEmailVerified = profile.email.isEmpty ? nil : false
            return profile
        }
        let request = HTTPRequest(
            try call.configuration.url(Text(unchecked: url.text.bytes + Array("/emails".utf8))),
            fields: [ProviderRequests.json, try ProviderRequests.bearer(token)], policy: call.configuration.policy)
        let primary = try await requests.send(request, for: call) { answer -> GitHubEmail? in
            try Self.primaryEmail(in: answer)
        }
        if let primary {
            profile.email = primary.address
            profile.isEmailVerified = primary.isVerified
        }
        return profile
    }

    private static func primaryEmail(in answer: HTTPAnswer) throws(FederationError) -> GitHubEmail? {
        // Without the scope user:email there is no list: 403 or 404.
        if answer.status == 403 || answer.status == 404 { return nil }
        guard answer.isSuccess, let list = (try? JSONValue(parsing: answer.body))?.array else {
            throw .unavailable(.badAnswer)
        }
        guard let primary = list.first(where: { $0["primary"] == true }), let address = primary["email"]?.text else {
            return nil
        }
        return GitHubEmail(address: address, isVerified: primary["verified"] == true)
    }

    /// docs.x.com/x-api/users/user-lookup-me
    private func twitter(_ url: HTTPURL, _ token: Secret, _ call: ProviderCall) async throws -> ProviderProfile {
        guard let full = url.with(query: "user.fields", "profile_image_url") else {
            throw FederationError.misconfigured(.badEndpoint)
        }
        return try await ask(full, token, call) { answer in
            guard let claims = answer["data"], claims.object != nil else {
                throw FederationError.unavailable(.badAnswer)
            }
            var profile = ProviderProfile(subject: try Self.subject(claims["id"]), claims: claims)
            profile.displayName = claims["name"]?.text ?? .empty
            profile.photoURL = claims["profile_image_url"]?.text ?? .empty
            return profile
        }
    }

    /// The user's id, which may be a number or a text.
    static func subject(_ value: JSONValue?) throws(FederationError) -> Text {
        switch value {
        case .string(let text) where (1...ProviderProfile.subjectByteCountMax).contains(text.byteCount): return text
        case .integer(let number): return Text("\(number)")
        default: throw .flawed(.missingSubject)
        }
    }
}
