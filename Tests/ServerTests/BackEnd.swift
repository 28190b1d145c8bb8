import Base
import Crypto
import JSON
import Messages
import TestSupport
import Tokens

/// A program with the key file of a service account. It signs tokens with that key, right and wrong ones.
struct BackEnd {
    let server: TestServer
    /// Calls with the admin key.
    let client: RawClient
    let account: ServiceAccount
    let key: SigningKey
    let keyFile: JSONValue

    /// Makes the account and a key with the admin's calls.
    init(
        _ server: TestServer, id: Text = "backend", role: Role = .unspecified,
        scope: Scope = Scope(tenants: .all(true)), customTokens: Bool = true, algorithm: Text = "ES256",
        keyLifetimeSeconds: Int64 = 0
    ) throws {
        self.server = server
        self.client = try server.connect()
        let made: ProjectCreateServiceAccountResponse = try client.call(
            "postern.v1.Project/CreateServiceAccount",
            ProjectCreateServiceAccountRequest(
                serviceAccountID: id, role: role, scope: scope, customTokens: customTokens))
        self.account = made.serviceAccount ?? ServiceAccount()
        let keyMade: ProjectCreateServiceAccountKeyResponse = try client.call(
            "postern.v1.Project/CreateServiceAccountKey",
            ProjectCreateServiceAccountKeyRequest(
                serviceAccountID: id, algorithm: algorithm, lifetimeSeconds: keyLifetimeSeconds))
        self.keyFile = try JSONValue(parsing: keyMade.keyFileJSON.withBytes { [UInt8]($0) })
        self.key = try SigningKey(der: Secret(PEM.decode("PRIVATE KEY", keyFile["private_key"]?.text?.bytes ?? [])))
    }

    var keyID: Text { key.publicKey.keyID }
    var now: Int64 { server.clock.clock.now().seconds }

    // MARK: Tokens

    /// The claims that firebase_admin writes.
    var claims: JSONValue {
        [
            "iss": .string(account.email), "sub": .string(account.email),
            "aud": "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit",
            "uid": "u1", "iat": .integer(now), "exp": .integer(now + 3_600),
        ]
    }

    var header: JSONValue { ["alg": .string(Text(key.algorithm.rawValue)), "kid": .string(keyID), "typ": "JWT"] }

    var callerHeader: JSONValue { header.with("typ", "postern-caller+jwt") }

    var callerClaims: JSONValue {
        [
            "iss": .string(account.email), "sub": .string(account.email), "aud": "https://issuer.test/test/caller",
            "iat": .integer(now), "exp": .integer(now + 3_600),
        ]
    }

    /// A token signed with the account's key, or with another, whatever header and payload say.
    func token(header: JSONValue? = nil, _ claims: JSONValue? = nil, signedBy key: SigningKey? = nil) -> Text {
        token(header: (header ?? self.header).serialized(), (claims ?? self.claims).serialized(), signedBy: key)
    }

    func token(header: [UInt8], _ payload: [UInt8], signedBy key: SigningKey? = nil) -> Text {
        let signed = Base64.url.encode(header) + [UInt8(ascii: ".")] + Base64.url.encode(payload)
        let signature = (key ?? self.key).sign(signed)
        return Text(unchecked: signed + [UInt8(ascii: ".")] + Base64.url.encode(signature))
    }

    func callerToken(header: JSONValue? = nil, _ claims: JSONValue? = nil) -> Text {
        token(header: header ?? callerHeader, claims ?? callerClaims)
    }

    // MARK: Calls

    func signIn(_ token: Text, tenantID: Text = .empty) throws -> AccountsSignInWithCustomTokenResponse {
        try client.call(
            "postern.v1.Accounts/SignInWithCustomToken",
            AccountsSignInWithCustomTokenRequest(tenantID: tenantID, token: Secret(token.bytes)))
    }

    /// The refusal of the token.
    func refusal(_ token: Text, tenantID: Text = .empty) -> Failure {
        failure { _ = try signIn(token, tenantID: tenantID) }
    }

    /// A connection that speaks for this account.
    func connect(_ token: Text? = nil) throws -> RawClient {
        let client = try server.connect(authenticated: false)
        client.apiKey = Secret((token ?? callerToken()).bytes)
        return client
    }

    func update(_ paths: [Text], _ change: (inout ProjectUpdateServiceAccountRequest) -> Void) throws {
        var request = ProjectUpdateServiceAccountRequest(
            serviceAccountID: account.serviceAccountID, updateMask: ProtobufFieldMask(paths: paths))
        change(&request)
        let _: ProjectUpdateServiceAccountResponse = try client.call(
            "postern.v1.Project/UpdateServiceAccount", request)
    }

    func revokeKey() throws {
        let _: ProjectRevokeServiceAccountKeyResponse = try client.call(
            "postern.v1.Project/RevokeServiceAccountKey",
            ProjectRevokeServiceAccountKeyRequest(serviceAccountID: account.serviceAccountID, keyID: keyID))
    }

    func delete() throws {
        let _: ProjectDeleteServiceAccountResponse = try client.call(
            "postern.v1.Project/DeleteServiceAccount",
            ProjectDeleteServiceAccountRequest(serviceAccountID: account.serviceAccountID))
    }

    func makeTenant(_ id: Text) throws {
        let _: TenantsCreateResponse = try client.call(
            "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: id))
    }
}

/// A key pair that belongs to nobody yet. Call this on a test's thread: making an RSA key takes its time.
func newKeyPair(_ algorithm: SigningAlgorithm = .es256) -> SigningKey { SigningKey.generate(algorithm) }

/// The claims of a JWT, unverified.
func claims(of token: Text) -> JSONValue {
    let parts = token.bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let payload = Base64.url.decode(parts[1]) else { return .null }
    return (try? JSONValue(parsing: payload)) ?? .null
}
