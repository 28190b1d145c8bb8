import Base
import Identity
import Messages
import Rules
import TestSupport
import Tokens

/// Calls of the end user's methods, short enough to read in a test. Identities come in as pending tokens: what a
/// provider proved earlier is as good as what it proves now, and no provider has to run for that.
struct IdentityClient {
    let server: TestServer
    let client: RawClient

    init(_ server: TestServer) throws {
        self.server = server
        self.client = try server.connect()
    }

    func pendingToken(_ identity: FederatedIdentity, tenantID: Text = .empty) -> Text {
        server.pendingToken(for: identity, tenantID: tenantID)
    }

    func credential(_ identity: FederatedIdentity) -> IdpCredential {
        IdpCredential(credential: .pendingToken(Secret(pendingToken(identity).bytes)))
    }

    func signIn(_ identity: FederatedIdentity, linkingTo idToken: Text = .empty) throws -> AccountsSignInWithIdpResponse
    {
        try client.call(
            "postern.v1.Accounts/SignInWithIdp",
            AccountsSignInWithIdpRequest(credential: credential(identity), idToken: idToken))
    }

    func signUp(
        _ email: Text = .empty, password: Text = "correct horse", linkingTo idToken: Text = .empty
    ) throws -> AccountsSignUpResponse {
        try client.call(
            "postern.v1.Accounts/SignUp",
            AccountsSignUpRequest(
                email: email, password: email.isEmpty ? Secret([]) : Secret(password.bytes), idToken: idToken))
    }

    func signIn(_ email: Text, password: Text = "correct horse") throws -> AccountsSignInWithPasswordResponse {
        try client.call(
            "postern.v1.Accounts/SignInWithPassword",
            AccountsSignInWithPasswordRequest(email: email, password: Secret(password.bytes)))
    }

    func customToken(for uid: Text) throws -> Secret {
        let minted: UsersCreateCustomTokenResponse = try client.call(
            "postern.v1.Users/CreateCustomToken", UsersCreateCustomTokenRequest(uid: uid))
        return minted.customToken
    }

    func signIn(customTokenFor uid: Text) throws -> AccountsSignInWithCustomTokenResponse {
        try client.call(
            "postern.v1.Accounts/SignInWithCustomToken",
            AccountsSignInWithCustomTokenRequest(token: try customToken(for: uid)))
    }

    func lookup(_ idToken: Text) throws -> User {
        let found: AccountsLookupResponse = try client.call(
            "postern.v1.Accounts/Lookup", AccountsLookupRequest(idToken: idToken))
        return found.user ?? User()
    }

    func refresh(_ refreshToken: Text) throws -> TokensRefreshResponse {
        try client.call("postern.v1.Tokens/Refresh", TokensRefreshRequest(refreshToken: refreshToken))
    }

    func get(_ uid: Text) throws -> User {
        let found: UsersGetResponse = try client.call("postern.v1.Users/Get", UsersGetRequest(uid: uid))
        return found.user ?? User()
    }

    func update(_ uid: Text, _ paths: [Text], _ change: (inout UsersUpdateRequest) -> Void) throws {
        var request = UsersUpdateRequest(uid: uid, updateMask: ProtobufFieldMask(paths: paths))
        change(&request)
        let _: UsersUpdateResponse = try client.call("postern.v1.Users/Update", request)
    }

    func setTenant(_ paths: [Text], _ change: (inout Messages.Tenant) -> Void) throws {
        var tenant = Messages.Tenant()
        change(&tenant)
        let _: TenantsUpdateResponse = try client.call(
            "postern.v1.Tenants/Update",
            TenantsUpdateRequest(tenant: tenant, updateMask: ProtobufFieldMask(paths: paths)))
    }
}

// MARK: - Codes and mail

extension IdentityClient {
    /// A mail in the outbox of the default pool, and the code its link carries.
    struct Mail {
        let message: OutboxMessage
        let contents: OutboxContents

        var code: Secret { IdentityClient.code(in: contents.link.string) }
        /// The code of the second link, "this was not me".
        var notMeCode: Secret { IdentityClient.code(in: contents.notMeLink.string) }
    }

    static func code(in link: String) -> Secret {
        guard let start = link.firstRange(of: "oobCode=")?.upperBound else { return Secret([]) }
        return Secret([UInt8](link[start...].prefix { $0 != "&" }.utf8))
    }

    /// All mail, newest first.
    func mails() throws -> [Mail] {
        let listed: OutboxListResponse = try client.call("postern.v1.Outbox/List", OutboxListRequest())
        return try listed.messages.map { message in
            let read: OutboxGetResponse = try client.call(
                "postern.v1.Outbox/Get", OutboxGetRequest(messageID: message.messageID))
            return Mail(message: read.message ?? OutboxMessage(), contents: read.contents ?? OutboxContents())
        }
    }

    @discardableResult
    func sendOob(
        _ type: OobRequestType, email: Text = .empty, newEmail: Text = .empty, idToken: Text = .empty,
        continueURL: Text = .empty
    ) throws -> Text {
        // The outbox lists by time, so no two mails of a test may have the same time.
        server.clock.advance(by: .milliseconds(1))
        let sent: AccountsSendOobCodeResponse = try client.call(
            "postern.v1.Accounts/SendOobCode",
            AccountsSendOobCodeRequest(
                requestType: type, email: email, newEmail: newEmail, idToken: idToken, continueURL: continueURL))
        return sent.email
    }

    func checkOob(_ code: Secret) throws -> AccountsCheckOobCodeResponse {
        try client.call("postern.v1.Accounts/CheckOobCode", AccountsCheckOobCodeRequest(oobCode: code))
    }

    func applyOob(_ code: Secret) throws -> AccountsApplyOobCodeResponse {
        server.clock.advance(by: .milliseconds(1))
        return try client.call("postern.v1.Accounts/ApplyOobCode", AccountsApplyOobCodeRequest(oobCode: code))
    }

    /// An admin's link that verifies an address.
    func generateVerification(of email: Text) throws -> UsersGenerateOobLinkResponse {
        try client.call(
            "postern.v1.Users/GenerateOobLink", UsersGenerateOobLinkRequest(requestType: .verifyEmail, email: email))
    }

    /// Sends a link to the user's mailbox, and follows it.
    func verifyEmail(_ idToken: Text) throws {
        try sendOob(.verifyEmail, idToken: idToken)
        let mail = try mails().first { $0.message.requestType == .verifyEmail }
        _ = try applyOob(mail?.code ?? Secret([]))
    }

    func resetPassword(_ code: Secret, _ password: Text) throws -> AccountsResetPasswordResponse {
        try client.call(
            "postern.v1.Accounts/ResetPassword",
            AccountsResetPasswordRequest(oobCode: code, newPassword: Secret(password.bytes)))
    }

    func signIn(
        _ email: Text, link code: Secret, linkingTo idToken: Text = .empty
    ) throws -> AccountsSignInWithEmailLinkResponse {
        try client.call(
            "postern.v1.Accounts/SignInWithEmailLink",
            AccountsSignInWithEmailLinkRequest(email: email, oobCode: code, idToken: idToken))
    }
}

/// The failure `body` throws; an empty one when it throws none.
func failure(_ body: () throws -> Void) -> Failure {
    do {
        try body()
        return Failure(.ok, "", "nothing was refused")
    } catch let failure as Failure {
        return failure
    } catch {
        return Failure(.unknown, "", "\(error)")
    }
}

extension Failure {
    func metadata(_ key: String) -> String? { metadata.first { $0.key == key }?.value }
}

extension FederatedIdentity {
    static func google(_ rawID: Text = "g-1", email: Text = "ada@gmail.com") -> FederatedIdentity {
        FederatedIdentity(
            providerID: "google.com", rawID: rawID, email: email, isEmailVerifiedByProvider: true, isEmailTrusted: true,
            displayName: "Ada at Google", photoURL: "https://g.example/ada")
    }

    static func apple(_ rawID: Text = "a-1", email: Text = "ada@gmail.com") -> FederatedIdentity {
        FederatedIdentity(
            providerID: "apple.com", rawID: rawID, email: email, isEmailVerifiedByProvider: true, isEmailTrusted: true)
    }

    static func facebook(_ rawID: Text = "f-1", email: Text = "ada@gmail.com") -> FederatedIdentity {
        FederatedIdentity(providerID: "facebook.com", rawID: rawID, email: email, displayName: "Ada on Facebook")
    }

    static func github(_ rawID: Text = "h-1", email: Text = "ada@gmail.com") -> FederatedIdentity {
        FederatedIdentity(
            providerID: "github.com", rawID: rawID, email: email, isEmailVerifiedByProvider: true)
    }
}

extension UsersGenerateOobLinkResponse {
    var notMeCode: Secret { IdentityClient.code(in: notMeLink.withBytes { String(decoding: $0, as: UTF8.self) }) }
}
