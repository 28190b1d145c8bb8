import Base
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
                fromRedirect: "state=\(visit.state)&code=\(encoded(visit.code))&user=%7B%7D")
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
