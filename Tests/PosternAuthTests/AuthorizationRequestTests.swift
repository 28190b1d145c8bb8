import Base
import JSON
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// A sign-in in a browser: out to the provider and back with a code.
@Suite struct AuthorizationRequestTests {
    private static let back = "com.example.app:/back"

    private func withProvider(
        _ body: (Application, FakeIdentityProvider, Auth) async throws -> Void
    ) async throws {
        try await Application.run { application in
            try await withIdentityProvider(clock: application.server.clock.clock) { provider in
                _ = try await ProvidersClient(channel: application.admin).create(
                    ProvidersCreateRequest(provider: provider.provider("oidc.corp")))
                _ = try await TenantsClient(channel: application.admin).update(
                    TenantsUpdateRequest(
                        tenant: Tenant(allowedContinueDomains: ["com.example.app:"]),
                        updateMask: ProtobufFieldMask(paths: ["allowed_continue_domains"])))
                try await body(application, provider, try application.auth())
            }
        }
    }

    private func request(_ auth: Auth) async throws -> OAuthAuthorizationRequest {
        try await OAuthProvider.authorizationRequest(providerID: "oidc.corp", continueURI: Self.back, auth: auth)
    }

    private func encoded(_ secret: Secret) -> String {
        secret.withBytes { $0.map { "%" + Hex.encode([$0]).string }.joined() }
    }

    @Test func `A browser goes to the provider, comes back, and its user is signed in`() async throws {
        try await withProvider { _, provider, auth in
            let request = try await OAuthProvider.authorizationRequest(
                providerID: "oidc.corp", continueURI: Self.back, scopes: ["groups"],
                customParameters: ["login_hint": "ada@example.com"], auth: auth)
            let visit = try #require(
                provider.visit(Text(request.url), as: .init("ada-1", email: "ada@example.com", name: "Ada")))
            #expect(visit.redirectURI.string == Self.back && visit.scopes.contains("groups"))
            #expect(visit.query["login_hint"] == "ada@example.com")
            let redirect = "\(visit.redirectURI)?code=\(encoded(visit.code))&state=\(visit.state)#_=_"
            let result = try await auth.signIn(with: request.credential(fromRedirect: redirect))
            #expect(result.user.email == "ada@example.com" && result.additionalUserInfo.isNewUser)
            #expect(result.additionalUserInfo.providerID == "oidc.corp")
        }
    }

    @Test func `The values that were kept, and a form that was posted, do as well`() async throws {
        try await withProvider { application, provider, auth in
            let begun = try await request(auth)
            let visit = try #require(provider.visit(Text(begun.url), as: .init("ada-1", email: "ada@example.com")))
            let kept = OAuthAuthorizationRequest(
                providerID: begun.providerID, continueURI: begun.continueURI, url: begun.url, state: begun.state,
                nonce: begun.nonce, codeVerifier: begun.codeVerifier)
            let credential = try kept.credential(
                fromRedirect: Self.back, postedForm: "state=\(visit.state)&code=\(encoded(visit.code))&user=%7B%7D")
            let user = try await application.auth().signIn(with: credential).user
            #expect(user.providerData.map(\.providerID) == ["oidc.corp"])
        }
    }

    @Test func `A redirect of another request, a refusal, and one without a code are told apart`() async throws {
        try await withProvider { _, _, auth in
            let (mine, theirs) = (try await request(auth), try await request(auth))
            func refusal(_ query: String) async throws -> AuthError {
                try await error {
                    _ = try mine.credential(fromRedirect: "\(Self.back)?\(query)")
                }
            }
            for query in ["code=c", "code=c&state=", "code=c&state=\(theirs.state)", "error=access_denied", ""] {
                let refused = try await refusal(query)
                #expect(refused.code == .invalidCredential && refused.reason == "WRONG_STATE")
            }
            let declined = try await refusal("error=access_denied&error_description=not+today&state=\(mine.state)")
            #expect(declined.code == .webContextCancelled && declined.message.hasSuffix("access_denied: not today"))
            let broken = try await refusal("error=server_error&code=c&state=\(mine.state)")
            #expect(broken.code == .webSignInUserInteractionFailure)
            for query in ["state=\(mine.state)", "code=&state=\(mine.state)"] {
                #expect(try await refusal(query).reason == "MISSING_CODE")
            }
        }
    }

    private func kept(
        _ continueURI: String, issuer: String = "", isIssuerRequired: Bool = false
    ) -> OAuthAuthorizationRequest {
        OAuthAuthorizationRequest(
            providerID: "oidc.corp", continueURI: continueURI, url: "", state: "s", nonce: "", codeVerifier: .empty,
            issuer: issuer, isIssuerRequired: isIssuerRequired)
    }

    /// A dishonest provider can send the browser on to another provider, with its own request's state. The code then
    /// comes to the other provider's continue URI, and must not be sent to the dishonest one (RFC 9700 §4.4).
    @Test(
        arguments: [
            ("https://a.example/one", "https://a.example/two"), ("https://a.example/one", "https://b.example/one"),
            ("https://a.example/one", "http://a.example/one"), ("https://a.example/one", "https://a.example/one/"),
            ("https://a.example/one", "https://a.example/on"), ("https://a.example/one", "https://a.example/ONE"),
            ("https://a.example/one", "https://a.example:8443/one"), ("https://a.example/one", "https://a.example"),
            ("https://a.example/one", "/one"), ("https://a.example/one", ""),
            ("com.example.app:/a", "com.example.app:/b"),
            ("https://a.example/?p=1", "https://a.example/?p=2"), ("https://a.example/?p=1", "https://a.example/"),
            ("https://a.example/\u{E9}", "https://a.example/e\u{301}"), ("", "/"),
        ])
    func `A redirect that came to another URL answers another provider's request`(
        _ continueURI: String, _ other: String
    ) async throws {
        let request = kept(continueURI)
        let query = "\(other.contains("?") ? "&" : "?")code=c&state=s"
        let redirected = try await error { _ = try request.credential(fromRedirect: "\(other)\(query)") }
        #expect(redirected.reason == "WRONG_STATE")
        let posted = try await error { _ = try request.credential(fromRedirect: other, postedForm: "code=c&state=s") }
        #expect(posted.reason == "WRONG_STATE")
    }

    @Test(
        arguments: [
            ("https://a.example/one", "https://a.example/one"), ("https://a.example", "https://a.example/"),
            ("https://a.example/?p=1", "https://a.example/?p=1"), ("com.example.app:/a", "com.example.app:/a"),
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000/"), ("com.example.app:", "com.example.app:"),
        ])
    func `A redirect to the continue URI is taken, with a query or with a form`(
        _ continueURI: String, _ same: String
    ) throws {
        let request = kept(continueURI)
        let query = "\(same.contains("?") ? "&" : "?")code=c&state=s"
        let redirected = try request.credential(fromRedirect: "\(same)\(query)#_=_")
        let posted = try request.credential(fromRedirect: same, postedForm: "code=c&state=s")
        #expect(redirected.provider == "oidc.corp" && posted.provider == "oidc.corp")
    }

    @Test func `A redirect of another issuer is refused`() async throws {
        let back = "https://a.example/one"
        let request = kept(back, issuer: "https://id.example")
        let others = ["https://other.example", "https://id.example/", ""]
        for issuer in others {
            for answer in ["code=c", "error=access_denied"] {
                let refused = try await error {
                    _ = try request.credential(fromRedirect: "\(back)?\(answer)&state=s&iss=\(issuer)")
                }
                #expect(refused.reason == "WRONG_STATE")
            }
        }
        // A provider need not name itself. Of a provider without an issuer, nothing is known.
        let named = try request.credential(fromRedirect: "\(back)?code=c&state=s&iss=https%3A%2F%2Fid.example")
        let unnamed = try request.credential(fromRedirect: "\(back)?code=c&state=s")
        let unknown = try kept(back).credential(fromRedirect: "\(back)?code=c&state=s&iss=https://other.example")
        #expect([named, unnamed, unknown].allSatisfy { $0.provider == "oidc.corp" })
    }

    /// RFC 9207 §2.4: the answer of another provider, which does not name itself.
    @Test func `A redirect without the issuer that the provider promises is refused`() async throws {
        let back = "https://a.example/one"
        let request = kept(back, issuer: "https://id.example", isIssuerRequired: true)
        for answer in ["code=c", "error=access_denied"] {
            let refused = try await error { _ = try request.credential(fromRedirect: "\(back)?\(answer)&state=s") }
            #expect(refused.reason == "WRONG_STATE")
        }
        let named = try request.credential(fromRedirect: "\(back)?code=c&state=s&iss=https%3A%2F%2Fid.example")
        #expect(named.provider == "oidc.corp")
    }

    @Test(arguments: [true, false])
    func `The server names the issuer, and tells whether the provider promises it`(_ promises: Bool) async throws {
        try await withProvider { _, provider, auth in
            provider.setDiscovery("authorization_response_iss_parameter_supported", .bool(promises))
            let asked = try await request(auth)
            #expect(asked.issuer == provider.issuer.string && asked.isIssuerRequired == promises)
        }
    }

    /// The fields of the URL do not count beside a form: anybody can link to the URL with a query.
    @Test func `Of a posted form only the form's fields count`() async throws {
        let request = kept("https://a.example/one")
        let refused = try await error {
            _ = try request.credential(fromRedirect: "https://a.example/one?state=s&code=c", postedForm: "code=c")
        }
        #expect(refused.reason == "WRONG_STATE")
    }

    @Test func `What the server says of the request is thrown`() async throws {
        try await withProvider { _, _, auth in
            func refusal(_ providerID: String, _ continueURI: String, _ scopes: [String] = []) async throws -> AuthError
            {
                try await error {
                    _ = try await OAuthProvider.authorizationRequest(
                        providerID: providerID, continueURI: continueURI, scopes: scopes, auth: auth)
                }
            }
            let reasons = [
                try await refusal("oidc.none", Self.back), try await refusal("oidc.corp", ""),
                try await refusal("oidc.corp", "http://elsewhere.example/"),
                try await refusal("oidc.corp", Self.back, [""]), try await refusal("oidc\0", Self.back),
            ]
            #expect(
                reasons.map(\.code) == [
                    .operationNotAllowed, .missingContinueURI, .invalidContinueURI, .internalError, .invalidProviderID,
                ])
            #expect(reasons[3].reason == "INVALID_SCOPE")
        }
    }

    @Test func `The verifier is not printed`() async throws {
        try await withProvider { _, _, auth in
            let request = try await request(auth)
            let verifier = request.codeVerifier.withBytes { String(decoding: $0, as: UTF8.self) }
            #expect(!verifier.isEmpty && !String(reflecting: request).contains(verifier))
        }
    }
}
