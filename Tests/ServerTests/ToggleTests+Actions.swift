import Base
import Crypto
import Messages
import Service
import TestSupport
import Testing
import Wire

/// The actions in the table of toggles.
extension ToggleTests {
    struct Subject {
        /// A name that no user has so far.
        let name = Text(RandomSource.system.alphanumeric(12).string.lowercased())
        var uid: Text
        var email: Text
        var tokens: TokenPair?
    }

    static func set(_ client: RawClient, signup: Bool, deletion: Bool) throws {
        var request = TenantsUpdateRequest(tenant: Messages.Tenant())
        request.tenant?.client = ClientConfig(
            permissions: ClientPermissions(disabledUserSignup: signup, disabledUserDeletion: deletion))
        request.updateMask = ProtobufFieldMask(
            paths: ["client.permissions.disabled_user_signup", "client.permissions.disabled_user_deletion"])
        _ = try client.call("postern.v1.Tenants/Update", request, returning: TenantsUpdateResponse.self)
    }

    private static func uniqueEmail() -> Text {
        Text("user-\(RandomSource.system.alphanumeric(12))@example.com")
    }

    static func makeSubject(_ client: RawClient, _ account: Account) throws -> Subject {
        let email = uniqueEmail()
        switch account {
        case .anonymous:
            let response = try client.call(
                "postern.v1.Accounts/SignUp", AccountsSignUpRequest(), returning: AccountsSignUpResponse.self)
            return Subject(uid: response.user?.uid ?? .empty, email: .empty, tokens: response.tokens)
        case .password:
            let response = try client.call(
                "postern.v1.Accounts/SignUp", AccountsSignUpRequest(email: email, password: Secret("secret1")),
                returning: AccountsSignUpResponse.self)
            return Subject(uid: response.user?.uid ?? .empty, email: email, tokens: response.tokens)
        case .madeByAdmin:
            let response = try client.call(
                "postern.v1.Users/Create", UsersCreateRequest(email: email, password: Secret("secret1")),
                returning: UsersCreateResponse.self)
            let signedIn = try client.call(
                "postern.v1.Accounts/SignInWithPassword",
                AccountsSignInWithPasswordRequest(email: email, password: Secret("secret1")),
                returning: AccountsSignInWithPasswordResponse.self)
            return Subject(uid: response.user?.uid ?? .empty, email: email, tokens: signedIn.tokens)
        }
    }

    static func perform(_ action: Action, _ identity: IdentityClient, _ subject: Subject) throws {
        let client = identity.client
        let idToken = subject.tokens?.idToken ?? .empty
        switch action {
        case .signInAsNewcomer(let way), .signInAgain(let way): try way.signIn(identity, subject.name)
        case .signIn: _ = try identity.signIn(subject.email, password: "secret1")
        case .signInWithCustomToken: _ = try identity.signIn(customTokenFor: subject.uid)
        case .lookup:
            let request = AccountsLookupRequest(idToken: idToken)
            _ = try client.call("postern.v1.Accounts/Lookup", request, returning: AccountsLookupResponse.self)
        case .update:
            var request = AccountsUpdateRequest(idToken: idToken, displayName: "New")
            request.updateMask = ProtobufFieldMask(paths: ["display_name"])
            _ = try client.call("postern.v1.Accounts/Update", request, returning: AccountsUpdateResponse.self)
        case .refresh:
            let request = TokensRefreshRequest(refreshToken: subject.tokens?.refreshToken ?? .empty)
            _ = try client.call("postern.v1.Tokens/Refresh", request, returning: TokensRefreshResponse.self)
        case .delete:
            let request = AccountsDeleteRequest(idToken: idToken)
            _ = try client.call("postern.v1.Accounts/Delete", request, returning: AccountsDeleteResponse.self)
        case .adminCreate:
            let request = UsersCreateRequest(email: uniqueEmail())
            _ = try client.call("postern.v1.Users/Create", request, returning: UsersCreateResponse.self)
        case .adminGet:
            let request = UsersGetRequest(uid: subject.uid)
            _ = try client.call("postern.v1.Users/Get", request, returning: UsersGetResponse.self)
        case .adminUpdate:
            var request = UsersUpdateRequest(uid: subject.uid, displayName: "New")
            request.updateMask = ProtobufFieldMask(paths: ["display_name"])
            _ = try client.call("postern.v1.Users/Update", request, returning: UsersUpdateResponse.self)
        case .adminClaims:
            let request = UsersSetCustomClaimsRequest(uid: subject.uid, customClaimsJSON: [UInt8]("{\"a\":1}".utf8))
            _ = try client.call(
                "postern.v1.Users/SetCustomClaims", request, returning: UsersSetCustomClaimsResponse.self)
        case .adminRevoke:
            let request = UsersRevokeTokensRequest(uid: subject.uid)
            _ = try client.call("postern.v1.Users/RevokeTokens", request, returning: UsersRevokeTokensResponse.self)
        case .adminDelete:
            let request = UsersDeleteRequest(uid: subject.uid)
            _ = try client.call("postern.v1.Users/Delete", request, returning: UsersDeleteResponse.self)
        }
    }

    static func expectRestricted(_ failure: Failure, _ toggle: Toggle) {
        #expect(failure.code == .permissionDenied)
        #expect(failure.reason == "ADMIN_RESTRICTED_OPERATION")
        let metadata = Dictionary(uniqueKeysWithValues: failure.metadata.map { ($0.key, $0.value) })
        let expected = toggle == .disabledUserDeletion ? "deletion" : "signup"
        #expect(metadata["toggle"] == "client.permissions.disabled_user_\(expected)")
        #expect(metadata["web_code"] == "auth/admin-restricted-operation")
        #expect(metadata["mobile_code"] == "ERROR_ADMIN_RESTRICTED_OPERATION")
        #expect(metadata["required_role"] == "tenant-admin")
        #expect(metadata["tenant"]?.isEmpty == true)
        #expect(metadata["operation"]?.hasPrefix("postern.v1.Accounts/") == true)
        #expect(metadata["decision_id"]?.isEmpty == false)
    }
}
