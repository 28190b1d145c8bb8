import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// A server that has one of everything that a method with `validate_only` is about.
struct DryRunScene {
    /// Every method with `validate_only`, by its full name.
    static let methods = PublishedMethod.all.filter { $0.field(named: "validate_only") != nil }.map(\.fullName)

    static let uid: Text = "ada"
    static let email: Text = "ada@example.com"
    static let everywhere = Scope(tenants: .all(true))
    private static let mailer = CertificateMapping(
        name: .uri("spiffe://example.org/mailer"), issuerKeySha256: Text(String(repeating: "0", count: 64)), role: .app,
        scope: everywhere)
    /// Tables that the server writes in its own time: the uses of keys, counted guesses, the work of a cluster.
    private static let ownTables: Set<Text> = ["api_key_uses", "guesses", "leases"]

    let server: TestServer
    let client: RawClient
    private(set) var idToken: Text = .empty
    private(set) var sessionID: Text = .empty
    private(set) var factorID: Text = .empty
    private(set) var apiKeyID: Text = .empty
    private(set) var accountKeyID: Text = .empty
    private(set) var mappingID: Text = .empty
    private(set) var signingKeyID: Text = .empty
    /// A mail that was given up.
    private(set) var messageID: Text = .empty

    init(_ server: TestServer) async throws {
        self.server = server
        self.client = try server.connect()
        try makeTenants()
        try makeUser()
        try makeCredentials()
        try await makeMail()
    }

    // MARK: Calling

    func call(_ method: String, validateOnly: Bool) throws {
        if method == "postern.v1.Users/Import" { return try importUser(validateOnly: validateOnly) }
        let name = method.replacing("postern.v1.", with: "")
        let message = request(name, validateOnly: validateOnly)
        let request = try #require(message, "\(name): write a request that changes something")
        let _: AnyMessage = try client.call(method, request)
    }

    private func importUser(validateOnly: Bool) throws {
        let request = UsersImportRequest(
            onConflict: .fail, users: [ImportUser(uid: "bob")], validateOnly: validateOnly)
        let stream = try ImportTests.Stream(server.connect(), request)
        #expect(try stream.answer().createdCount == 1)
        try stream.end()
    }

    // MARK: Comparing

    func tables() throws -> [StoreDigest.Table] {
        try server.project.store.digest().tables.filter { !Self.ownTables.contains($0.name) }
    }

    /// The names of the tables that are not as they were.
    func tablesChanged(since before: [StoreDigest.Table]) throws -> [Text] {
        try tables().filter { !before.contains($0) }.map(\.name)
    }

    // MARK: Making

    private func makeTenants() throws {
        let _: TenantsCreateResponse = try client.call(
            "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
        let _: TenantsCreateResponse = try client.call(
            "postern.v1.Tenants/Create",
            TenantsCreateRequest(
                tenantID: "template", tenant: Messages.Tenant(enableAnonymousUser: true),
                updateMask: ProtobufFieldMask(paths: ["enable_anonymous_user"])))
        let _: ProvidersCreateResponse = try client.call(
            "postern.v1.Providers/Create",
            ProvidersCreateRequest(
                provider: Provider(
                    providerID: "oidc.corp", clientID: "client", issuer: "https://127.0.0.1:1",
                    allowPrivateAddresses: true)))
    }

    private mutating func makeUser() throws {
        let _: UsersCreateResponse = try client.call(
            "postern.v1.Users/Create",
            UsersCreateRequest(
                uid: Self.uid, email: Self.email, emailVerified: true, password: Secret("correct horse")))
        let _: UsersLinkResponse = try client.call(
            "postern.v1.Users/Link",
            UsersLinkRequest(uid: Self.uid, provider: ProviderInfo(providerID: "google.com", rawID: "g-1")))
        let signedIn: AccountsSignInWithPasswordResponse = try client.call(
            "postern.v1.Accounts/SignInWithPassword",
            AccountsSignInWithPasswordRequest(email: Self.email, password: Secret("correct horse")))
        idToken = try #require(signedIn.tokens).idToken
        let listed: UsersListSessionsResponse = try client.call(
            "postern.v1.Users/ListSessions", UsersListSessionsRequest(uid: Self.uid))
        sessionID = try #require(listed.sessions.first).sessionID
        let added: UsersAddSecondFactorResponse = try client.call(
            "postern.v1.Users/AddSecondFactor",
            UsersAddSecondFactorRequest(uid: Self.uid, phoneNumber: "+14155550123"))
        factorID = added.factorID
    }

    private mutating func makeCredentials() throws {
        let key: ProjectCreateApiKeyResponse = try client.call(
            "postern.v1.Project/CreateApiKey", ProjectCreateApiKeyRequest(role: .app, scope: Self.everywhere))
        apiKeyID = try #require(key.apiKey).apiKeyID
        let _: ProjectCreateServiceAccountResponse = try client.call(
            "postern.v1.Project/CreateServiceAccount",
            ProjectCreateServiceAccountRequest(serviceAccountID: "robot", role: .app, scope: Self.everywhere))
        let accountKey: ProjectCreateServiceAccountKeyResponse = try client.call(
            "postern.v1.Project/CreateServiceAccountKey",
            ProjectCreateServiceAccountKeyRequest(serviceAccountID: "robot", algorithm: "ES256"))
        accountKeyID = try #require(accountKey.key).keyID
        let mapped: ProjectCreateCertificateMappingResponse = try client.call(
            "postern.v1.Project/CreateCertificateMapping",
            ProjectCreateCertificateMappingRequest(certificateMapping: Self.mailer))
        mappingID = try #require(mapped.certificateMapping).certificateMappingID
        let signing: ProjectListSigningKeysResponse = try client.call(
            "postern.v1.Project/ListSigningKeys", ProjectListSigningKeysRequest())
        signingKeyID = try #require(signing.keys.first { $0.tokenUse == .idToken }).keyID
    }

    private mutating func makeMail() async throws {
        let _: AccountsSendOobCodeResponse = try client.call(
            "postern.v1.Accounts/SendOobCode",
            AccountsSendOobCodeRequest(requestType: .passwordReset, email: Self.email))
        let listed: OutboxListResponse = try client.call("postern.v1.Outbox/List", OutboxListRequest())
        let id = try #require(listed.messages.first).messageID
        messageID = id
        try await server.project.store.write { transaction in
            guard var stored = try transaction.get(Tables.outbox, TenantTextKey(.empty, id)) else { return }
            stored.message?.state = .dead
            try transaction.put(Tables.outbox, TenantTextKey(.empty, id), stored)
        }
    }
}
