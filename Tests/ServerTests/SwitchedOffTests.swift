import Base
import Messages
import TestSupport
import Testing

/// A refusal by a setting of the tenant says which setting it is, and who can change it.
@Suite struct SwitchedOffTests {
    private static let email: Text = "ada@example.com"

    private static func expect(
        _ reason: String, by setting: String, key: String = "setting",
        sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
    ) {
        let refused = failure(body)
        #expect(refused.reason == reason, sourceLocation: sourceLocation)
        #expect(refused.metadata(key) == setting, sourceLocation: sourceLocation)
        #expect(refused.metadata("required_role") == "tenant-admin", sourceLocation: sourceLocation)
    }

    @Test func `A way to sign in that is switched off names its setting`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp(Self.email)
            Self.expect("ADMIN_ONLY_OPERATION", by: "enable_anonymous_user") { _ = try client.signUp() }
            Self.expect("OPERATION_NOT_ALLOWED", by: "enable_email_link_signin") {
                try client.sendOob(.emailSignin, email: Self.email)
            }
            Self.expect("OPERATION_NOT_ALLOWED", by: "enable_email_link_signin") {
                _ = try client.signIn(Self.email, link: Secret("code"))
            }
            Self.expect("OPERATION_NOT_ALLOWED", by: "enable_phone_signin") { try client.sendCode(to: "+14155550123") }
            Self.expect("OPERATION_NOT_ALLOWED", by: "github.com", key: "provider_id") {
                let _: AccountsSignInWithIdpResponse = try client.client.call(
                    "postern.v1.Accounts/SignInWithIdp",
                    AccountsSignInWithIdpRequest(
                        credential: IdpCredential(
                            providerID: "github.com", credential: .providerAccessToken(Secret("token")))))
            }
            try client.setTenant(["allow_password_signup"]) { $0.allowPasswordSignup = false }
            Self.expect("PASSWORD_LOGIN_DISABLED", by: "allow_password_signup") { _ = try client.signIn(Self.email) }
            Self.expect("OPERATION_NOT_ALLOWED", by: "allow_password_signup") {
                _ = try client.signUp("bob@example.com")
            }
        }
    }

    @Test func `Other settings that refuse are named, too`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try #require(try client.signUp(Self.email).tokens).idToken
            Self.expect("OPERATION_NOT_ALLOWED", by: "enable_email_privacy") {
                let _: AccountsUpdateResponse = try client.client.call(
                    "postern.v1.Accounts/Update",
                    AccountsUpdateRequest(
                        idToken: idToken, updateMask: ProtobufFieldMask(paths: ["email"]), email: "new@example.com"))
            }
            Self.expect("SECOND_FACTORS_NOT_ALLOWED", by: "second_factor_state") { _ = try client.startApp(idToken) }
            try client.setFactors(.enabled, [.phone])
            Self.expect("SECOND_FACTORS_NOT_ALLOWED", by: "allowed_second_factors") {
                _ = try client.startApp(idToken)
            }
            try client.setTenant(["enable_anonymous_user", "second_factor_state"]) {
                $0.enableAnonymousUser = true
                $0.secondFactorState = .mandatory
            }
            Self.expect("ADMIN_ONLY_OPERATION", by: "second_factor_state") { _ = try client.signUp() }
            try client.setTenant(["disable_auth"]) { $0.disableAuth = true }
            Self.expect("PROJECT_DISABLED", by: "disable_auth") { _ = try client.signIn(Self.email) }
        }
    }
}
