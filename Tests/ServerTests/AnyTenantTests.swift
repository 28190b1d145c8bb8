import Base
import Messages
import TestSupport
import Testing

/// Verifying tokens whose tenant only the token names.
@Suite struct AnyTenantTests {
    /// Whoever has an account in another tenant can send its token anywhere. The verifier's key is not to blame.
    @Test func `Another tenant's token is a mismatch to a bound key, and no call beyond the key`() async throws {
        try await withServer { server in
            try server.makeTenant("acme")
            try server.makeTenant("beta")
            let made: AccountsSignUpResponse = try server.connect().call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(tenantID: "beta", email: "ada@example.com", password: Secret("correct horse")))
            let idToken = try #require(made.tokens).idToken
            let cookie: TokensCreateSessionCookieResponse = try server.connect().call(
                "postern.v1.Tokens/CreateSessionCookie",
                TokensCreateSessionCookieRequest(tenantID: "beta", idToken: idToken))
            let verifier = try server.client(as: .verifier, of: "acme")
            let ofIDToken = failure {
                let _: TokensVerifyIdTokenResponse = try verifier.call(
                    "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: idToken, anyTenant: true))
            }
            let ofCookie = failure {
                let _: TokensVerifySessionCookieResponse = try verifier.call(
                    "postern.v1.Tokens/VerifySessionCookie",
                    TokensVerifySessionCookieRequest(sessionCookie: cookie.sessionCookie, anyTenant: true))
            }
            #expect(ofIDToken.reason == "TENANT_ID_MISMATCH" && ofIDToken.metadata("tenant") == "beta")
            #expect(ofCookie.reason == "TENANT_ID_MISMATCH" && ofCookie.metadata("tenant") == "beta")
            for tenantID in ["acme", "beta", ""] as [Text] {
                let events: AuditListEventsResponse = try server.connect().call(
                    "postern.v1.Audit/ListEvents",
                    AuditListEventsRequest(tenantID: tenantID, filter: EventFilter(kinds: [.callDenied])))
                #expect(events.events.isEmpty, "\(tenantID)")
            }
        }
    }
}
