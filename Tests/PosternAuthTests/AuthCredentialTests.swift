import Base
import Messages
import PosternClient
import Testing

@testable import PosternAuth

/// The parts of a provider's credential that are sent to the server.
@Suite struct AuthCredentialTests {
    private func sent(_ credential: AuthCredential) throws -> IdpCredential {
        try Auth(configuration: .init(address: "127.0.0.1:1", credentials: .none)).backend.identity(credential)
    }

    @Test func `An ID token goes with its nonce, also beside an access token`() throws {
        let both = OAuthProvider.credential(
            providerID: "apple.com", idToken: "id", rawNonce: "n", accessToken: "access")
        let wanted = IdpCredential(
            providerID: "apple.com", credential: .providerIDToken(Secret("id")), nonce: "n")
        #expect(try sent(both) == wanted)
        let only = OAuthProvider.credential(providerID: "oidc.work", idToken: "id")
        #expect(
            try sent(only) == IdpCredential(providerID: "oidc.work", credential: .providerIDToken(Secret("id"))))
    }

    @Test func `An access token goes alone`() throws {
        let credential = OAuthProvider.credential(providerID: "github.com", accessToken: "access")
        #expect(credential.provider == "github.com")
        #expect(
            try sent(credential)
                == IdpCredential(providerID: "github.com", credential: .providerAccessToken(Secret("access"))))
    }

    @Test func `An authorization code goes with all that its request had`() throws {
        let credential = OAuthProvider.credential(
            providerID: "google.com", authorizationCode: "code", redirectURI: "https://app.example/back",
            codeVerifier: "verifier", rawNonce: "n")
        let wanted = IdpCredential(
            providerID: "google.com", credential: .authorizationCode(Secret("code")), nonce: "n",
            redirectURI: "https://app.example/back", codeVerifier: Secret("verifier"))
        #expect(try sent(credential) == wanted)
    }

    @Test func `A credential with a NUL in it is refused here`() async throws {
        let auth = try Auth(configuration: .init(address: "127.0.0.1:1", credentials: .none))
        let credential = OAuthProvider.credential(providerID: "google.com", idToken: "a\0b")
        let refusal = try await error { _ = try await auth.signIn(with: credential) }
        #expect(refusal.code == .invalidCredential)
        #expect(refusal.reason == "INVALID_TEXT")
    }
}
