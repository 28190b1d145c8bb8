import Base
import Messages
import Testing

@testable import Federation

/// The issuer whose users a configured provider's identifiers name.
@Suite struct IdentityIssuerTests {
    private func issuer(_ providerID: Text, issuer: Text = .empty, userInfo: Text = .empty) -> Text? {
        ProviderConfiguration.identityIssuer(
            of: Provider(
                providerID: providerID, issuer: issuer,
                endpoints: userInfo.isEmpty ? nil : ProviderEndpoints(userInfo: userInfo)))
    }

    @Test func everyKnownProviderHasOneOfItsOwn() {
        let ids: [Text] = [
            "google.com", "apple.com", "microsoft.com", "yahoo.com", "facebook.com", "twitter.com", "github.com",
            "linkedin.com",
        ]
        let issuers = ids.map { issuer($0) }
        #expect(Set(issuers).count == ids.count && !issuers.contains(nil) && !issuers.contains(""))
        #expect(issuer("github.com") == "github.com" && issuer("google.com") == "https://accounts.google.com")
        #expect(issuer("saml.x") == nil)
    }

    @Test func anIssuerOfOnesOwnCountsByteForByte() {
        let spellings: [Text] = [
            "https://a.example", "https://a.example/", "https://A.example", "https://a.example:443",
            "https://a.example/x", "http://a.example",
        ]
        for id in ["oidc.corp", "google.com", "github.com", "microsoft.com"] as [Text] {
            #expect(spellings.allSatisfy { issuer(id, issuer: $0) == $0 })
            // An endpoint for access tokens is taken to belong to the configured issuer.
            #expect(issuer(id, issuer: spellings[0], userInfo: "https://b.example/me") == spellings[0])
        }
    }

    @Test func bothSpellingsOfGoogleAreOne() {
        for spelling in ["", "https://accounts.google.com", "accounts.google.com"] as [Text] {
            #expect(issuer("google.com", issuer: spelling) == "https://accounts.google.com")
        }
    }

    /// Narrowing an application to one directory must not lock its users out.
    @Test func microsoftIsOneWhicheverDirectoryIsLetIn() {
        let template: Text = "https://login.microsoftonline.com/{tenantid}/v2.0"
        for directory in ["{tenantid}", "common", "9188040d-6c67-4c5b-b112-36a304b66dad"] {
            let configured = Text("https://login.microsoftonline.com/\(directory)/v2.0")
            #expect(issuer("microsoft.com", issuer: configured) == template)
        }
        for other in [
            "https://login.microsoftonline.com//v2.0", "https://login.microsoftonline.com/a/b/v2.0",
            "https://login.microsoftonline.com/a/v2.0/", "https://login.microsoftonline.us/a/v2.0",
            "https://login.microsoftonline.com/v2.0",
        ] as [Text] {
            #expect(issuer("microsoft.com", issuer: other) == other)
        }
    }

    /// For a provider without an issuer, the server that is asked counts.
    @Test func anotherEndpointIsAnotherIssuerWhereThereIsNone() {
        #expect(issuer("github.com", userInfo: "https://api.github.com/user") == "github.com")
        #expect(issuer("github.com", userInfo: "https://API.GitHub.com/user?x=1") == "github.com")
        #expect(issuer("github.com", userInfo: "https://ghe.example/api/v3/user") == "https://ghe.example")
        #expect(issuer("github.com", userInfo: "https://GHE.example?x") == "https://ghe.example")
        #expect(issuer("github.com", userInfo: "https://ghe.example:8443/") == "https://ghe.example:8443")
        #expect(issuer("twitter.com", userInfo: "http://127.0.0.1:80") == "http://127.0.0.1:80")
        #expect(issuer("facebook.com", userInfo: "https://graph.facebook.com/v19/me") == "https://www.facebook.com")
        #expect(issuer("facebook.com", userInfo: "https://other.example/me") == "https://other.example")
        // The identifiers are the issuer's, whichever endpoint tells them.
        #expect(issuer("google.com", userInfo: "https://b.example/me") == "https://accounts.google.com")
    }
}
