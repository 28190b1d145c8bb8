public import Base
import Synchronization

/// The authorization endpoint, as the end user's browser meets it.
extension FakeIdentityProvider {
    /// What the browser carries back to the application.
    public struct Visit: Sendable {
        public let redirectURI: Text
        public let state: Text
        public let code: Secret
        public let scopes: [String]
        /// All parameters of the request to the provider.
        public let query: [String: String]
    }

    /// `user` signs in at the provider with this URI and agrees. Nil where a provider would show an error instead: an
    /// unknown client, another endpoint, no request for a code (RFC 6749 §4.1.1), another challenge than S256.
    public func visit(_ uri: Text, as user: User) -> Visit? {
        let parts = uri.string.split(separator: "?", maxSplits: 1).map(String.init)
        guard parts.count == 2, parts[0] == server.url + "/authorize" else { return nil }
        let query = FakeHTTPServer.members(parts[1])
        let challenge = query["code_challenge"]
        guard let clientID = query["client_id"], state.withLock({ $0.clients[clientID] }) != nil,
            query["response_type"] == "code", let redirectURI = query["redirect_uri"],
            query["code_challenge_method"] == challenge.map({ _ in "S256" })
        else { return nil }
        let grant = Grant(
            user: user, clientID: clientID, redirectURI: redirectURI, challenge: challenge ?? "",
            nonce: Text(query["nonce"] ?? ""))
        return Visit(
            redirectURI: Text(redirectURI), state: Text(query["state"] ?? ""), code: code(for: grant),
            scopes: (query["scope"] ?? "").split(separator: " ").map(String.init), query: query)
    }
}
