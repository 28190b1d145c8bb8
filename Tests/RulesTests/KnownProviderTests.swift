import Base
import Testing

@testable import Rules

@Suite struct KnownProviderTests {
    @Test(
        arguments: [
            "google.com", "apple.com", "microsoft.com", "yahoo.com", "facebook.com", "twitter.com", "github.com",
            "linkedin.com", "oidc.a", "oidc.corp-2", "oidc.a2345678901234567890123456789012",
        ] as [Text])
    func someIDsCanBeConfigured(_ id: Text) {
        #expect(KnownProvider.isID(id))
        #expect(KnownProvider(id) != nil)
    }

    @Test(
        arguments: [
            "", "google", "google.com ", "password", "phone", "saml.x", "oidc.", "oidc", "oidc.A", "oidc.a.b",
            "oidc.a_b",
            "xoidc.a", "oidc.a23456789012345678901234567890123",
        ] as [Text])
    func othersCannot(_ id: Text) {
        #expect(!KnownProvider.isID(id))
        #expect(KnownProvider(id) == nil)
    }
}
