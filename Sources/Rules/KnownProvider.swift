public import Base
public import Messages

/// The built-in knowledge about a provider: its endpoints, its dialect, and how far it is trusted for an email.
///
/// Sources: the providers' own documentation of OpenID Connect and OAuth 2.0, as named beside each.
public struct KnownProvider: Sendable {
    /// The form of the user-info answer.
    public enum UserInfoShape: Sendable { case oidc, facebook, gitHub, twitter }

    /// The way to learn which client an access token was issued to.
    public enum TokenCheck: Sendable { case none, googleTokenInfo, facebookDebug, gitHubApplication, introspection }

    /// The way in which a client proves itself at the token endpoint (RFC 6749 §2.3.1).
    public enum ClientAuthentication: Sendable { case discovered, basic, post }

    /// The parameters of the authorization endpoint.
    public struct Authorization: Sendable {
        public internal(set) var scopes: [Text] = ["openid", "email", "profile"]
        public internal(set) var parameters: [(name: Text, value: Text)] = []
        /// Whether its ID tokens carry the nonce that was asked for.
        public internal(set) var hasNonce = true
        /// RFC 7636.
        public internal(set) var hasPKCE = true
    }

    public let issuer: Text
    /// A second spelling of the issuer that `iss` may have.
    public internal(set) var issuerAlias: Text = .empty
    /// Whether `iss` has the user's directory in the place of `{tenantid}` in the discovery document.
    public internal(set) var hasIssuerTemplate = false
    public let endpoints: ProviderEndpoints
    public internal(set) var userInfoShape = UserInfoShape.oidc
    public internal(set) var tokenCheck = TokenCheck.none
    public internal(set) var clientAuthentication = ClientAuthentication.post
    public internal(set) var authorization = Authorization()
    public internal(set) var trust: TrustPolicy = .never

    /// Nil for an id that is neither known nor `oidc.<name>`.
    public init?(_ providerID: Text) {
        if let known = Self.table[providerID] {
            self = known
            return
        }
        guard Self.isOwnProvider(providerID) else { return nil }
        self.init(issuer: .empty, endpoints: ProviderEndpoints())
        tokenCheck = .introspection
        clientAuthentication = .discovered
    }

    /// Whether a provider can have this id: one of those known, or "oidc." and a name.
    public static func isID(_ providerID: Text) -> Bool { table[providerID] != nil || isOwnProvider(providerID) }

    private static func isOwnProvider(_ providerID: Text) -> Bool {
        let name = providerID.bytes.dropFirst(prefix.count)
        return providerID.bytes.starts(with: prefix) && (1...32).contains(name.count)
            && name.allSatisfy(\.isLowercaseLDH)
    }

    private init(issuer: Text, endpoints: ProviderEndpoints) {
        self.issuer = issuer
        self.endpoints = endpoints
    }

    private init(issuer: Text, endpoints: ProviderEndpoints, _ configure: (inout KnownProvider) -> Void) {
        self.init(issuer: issuer, endpoints: endpoints)
        configure(&self)
    }

    private static let prefix = [UInt8]("oidc.".utf8)

    private static let table: [Text: KnownProvider] = [
        "google.com": google, "apple.com": apple, "microsoft.com": microsoft, "yahoo.com": yahoo,
        "facebook.com": facebook, "twitter.com": twitter, "github.com": gitHub, "linkedin.com": linkedIn,
    ]

    /// developers.google.com/identity/openid-connect; `iss` comes in two spellings.
    private static let google = KnownProvider(
        issuer: "https://accounts.google.com",
        endpoints: ProviderEndpoints(
            jwks: "https://www.googleapis.com/oauth2/v3/certs", token: "https://oauth2.googleapis.com/token",
            userInfo: "https://openidconnect.googleapis.com/v1/userinfo",
            tokenCheck: "https://oauth2.googleapis.com/tokeninfo",
            authorization: "https://accounts.google.com/o/oauth2/v2/auth")
    ) {
        $0.issuerAlias = "accounts.google.com"
        $0.tokenCheck = .googleTokenInfo
        $0.trust = .domains(["gmail.com"], requiring: .init(name: "email_verified", value: "true"))
    }

    /// developer.apple.com/documentation/signinwithapplerestapi; there is no user-info endpoint.
    private static let apple = KnownProvider(
        issuer: "https://appleid.apple.com",
        endpoints: ProviderEndpoints(
            jwks: "https://appleid.apple.com/auth/keys", token: "https://appleid.apple.com/auth/token",
            authorization: "https://appleid.apple.com/auth/authorize")
    ) {
        // When scopes are asked for, Apple sends the code in a form.
        $0.authorization = Authorization(
            scopes: ["openid", "email", "name"], parameters: [("response_mode", "form_post")])
        $0.trust = .always
    }

    /// learn.microsoft.com/entra/identity-platform: any account, of work or personal.
    private static let microsoft = KnownProvider(
        issuer: "https://login.microsoftonline.com/{tenantid}/v2.0",
        endpoints: ProviderEndpoints(
            jwks: "https://login.microsoftonline.com/common/discovery/v2.0/keys",
            token: "https://login.microsoftonline.com/common/oauth2/v2.0/token",
            userInfo: "https://graph.microsoft.com/oidc/userinfo",
            authorization: "https://login.microsoftonline.com/common/oauth2/v2.0/authorize")
    ) {
        $0.hasIssuerTemplate = true
        $0.trust = .domains(
            ["outlook.com", "hotmail.com"],
            // The directory of personal accounts: the admin of any other one can write any email into a token.
            requiring: .init(name: "tid", value: "9188040d-6c67-4c5b-b112-36a304b66dad"))
    }

    /// developer.yahoo.com/oauth2/guide/openid_connect
    private static let yahoo = KnownProvider(
        issuer: "https://api.login.yahoo.com",
        endpoints: ProviderEndpoints(
            jwks: "https://api.login.yahoo.com/openid/v1/certs",
            token: "https://api.login.yahoo.com/oauth2/get_token",
            userInfo: "https://api.login.yahoo.com/openid/v1/userinfo",
            authorization: "https://api.login.yahoo.com/oauth2/request_auth")
    ) {
        $0.clientAuthentication = .basic
        $0.trust = .domains(["yahoo.com"], requiring: .init(name: "email_verified", value: "true"))
    }

    /// developers.facebook.com/docs/facebook-login: access tokens, and ID tokens of Limited Login.
    private static let facebook = KnownProvider(
        issuer: "https://www.facebook.com",
        endpoints: ProviderEndpoints(
            jwks: "https://www.facebook.com/.well-known/oauth/openid/jwks/",
            token: "https://graph.facebook.com/oauth/access_token", userInfo: "https://graph.facebook.com/me",
            tokenCheck: "https://graph.facebook.com/debug_token",
            authorization: "https://www.facebook.com/dialog/oauth")
    ) {
        $0.authorization.scopes = ["email", "public_profile"]
        $0.userInfoShape = .facebook
        $0.tokenCheck = .facebookDebug
    }

    /// docs.x.com: OAuth 2.0 with PKCE; its answers name no email and no client.
    private static let twitter = KnownProvider(
        issuer: .empty,
        endpoints: ProviderEndpoints(
            token: "https://api.twitter.com/2/oauth2/token", userInfo: "https://api.twitter.com/2/users/me",
            authorization: "https://twitter.com/i/oauth2/authorize")
    ) {
        $0.authorization.scopes = ["users.read", "tweet.read"]
        $0.userInfoShape = .twitter
        $0.clientAuthentication = .basic
    }

    /// docs.github.com/rest: /user, /user/emails and "check a token".
    private static let gitHub = KnownProvider(
        issuer: .empty,
        endpoints: ProviderEndpoints(
            token: "https://github.com/login/oauth/access_token", userInfo: "https://api.github.com/user",
            tokenCheck: "https://api.github.com/applications/{client_id}/token",
            authorization: "https://github.com/login/oauth/authorize")
    ) {
        $0.authorization.scopes = ["read:user", "user:email"]
        $0.userInfoShape = .gitHub
        $0.tokenCheck = .gitHubApplication
    }

    /// learn.microsoft.com/linkedin: Sign In with LinkedIn using OpenID Connect.
    private static let linkedIn = KnownProvider(
        issuer: "https://www.linkedin.com/oauth",
        endpoints: ProviderEndpoints(
            jwks: "https://www.linkedin.com/oauth/openid/jwks",
            token: "https://www.linkedin.com/oauth/v2/accessToken", userInfo: "https://api.linkedin.com/v2/userinfo",
            tokenCheck: "https://www.linkedin.com/oauth/v2/introspectToken",
            authorization: "https://www.linkedin.com/oauth/v2/authorization")
    ) {
        // Its ID tokens carry no nonce, and it refuses a code_verifier of applications that are not native ones.
        $0.authorization.hasNonce = false
        $0.authorization.hasPKCE = false
        $0.tokenCheck = .introspection
    }
}
