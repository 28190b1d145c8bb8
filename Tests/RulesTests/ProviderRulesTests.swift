import Base
import Crypto
import Messages
import Testing

@testable import Rules

@Suite struct ProviderRulesTests {
    private func reason(_ change: (inout Provider) -> Void) -> String? {
        var provider = Provider()
        provider.providerID = "oidc.corp"
        provider.clientID = "c"
        provider.issuer = "https://id.example"
        change(&provider)
        do throws(Failure) {
            try ProviderRules.check(provider, limits: Limits())
            return nil
        } catch {
            return error.reason
        }
    }

    private func text(_ count: Int) -> Text { Text(String(repeating: "x", count: count)) }

    @Test(
        arguments: [
            "google.com", "apple.com", "microsoft.com", "yahoo.com", "facebook.com", "twitter.com", "github.com",
            "linkedin.com", "oidc.a", "oidc.a-1", "oidc.abcdefghijklmnopqrstuvwxyz012345",
        ] as [Text])
    func anIDIsKnownOrOIDC(_ id: Text) { #expect(reason { $0.providerID = id } == nil) }

    @Test(
        arguments: [
            "", "google", "Google.com", "google.com ", "oidc.", "oidc", "oidc.A", "oidc.a.b", "oidc.a_b", "saml.x",
            "password", "phone", "oidc.abcdefghijklmnopqrstuvwxyz0123456", "oidc.é",
        ] as [Text])
    func anyOtherIDIsRefused(_ id: Text) { #expect(reason { $0.providerID = id } == "INVALID_PROVIDER_ID") }

    @Test func aClientIDHasOneTo512PrintableCharacters() {
        #expect(reason { $0.clientID = text(512) } == nil)
        for id in ["", "a b", "é", "a\n"] + [text(513)] as [Text] {
            #expect(reason { $0.clientID = id } == "INVALID_CLIENT_ID")
            #expect(reason { $0.additionalAudiences = ["ok", id] } == "INVALID_CLIENT_ID")
        }
        #expect(reason { $0.additionalAudiences = Array(repeating: "a", count: 20) } == nil)
        #expect(reason { $0.additionalAudiences = Array(repeating: "a", count: 21) } == "INVALID_CLIENT_ID")
    }

    @Test func anIssuerIsAnHTTPSURL() {
        for issuer in ["", "id.example", "http://127.0.0.1", "https://", "https://a?x", "https://a#x", "https://u@a"]
            as [Text]
        {
            #expect(reason { $0.issuer = issuer } == "INVALID_ISSUER", "\(issuer)")
        }
        #expect(reason { ($0.issuer, $0.allowHTTPLoopback) = ("http://127.0.0.1:1", true) } == nil)
        // A known provider brings its own issuer.
        #expect(reason { ($0.providerID, $0.issuer) = ("google.com", .empty) } == nil)
        let template: Text = "https://login.example/{tenantid}/v2.0"
        #expect(reason { ($0.providerID, $0.issuer) = ("microsoft.com", template) } == nil)
        #expect(reason { $0.issuer = template } == "INVALID_ISSUER")
    }

    @Test func anEndpointIsAnHTTPSURL() {
        for path in [\ProviderEndpoints.discovery, \.jwks, \.token, \.userInfo, \.tokenCheck] {
            func reason(_ url: Text, http: Bool = false) -> String? {
                self.reason {
                    var endpoints = ProviderEndpoints()
                    endpoints[keyPath: path] = url
                    $0.endpoints = endpoints
                    $0.allowHTTPLoopback = http
                }
            }
            #expect(reason("https://a.example/x?y=1") == nil)
            #expect(reason("http://127.0.0.1/x") == "INVALID_ENDPOINT")
            #expect(reason("http://127.0.0.1/x", http: true) == nil)
            #expect(reason("file:///etc/passwd") == "INVALID_ENDPOINT")
            let isCheck = path == \ProviderEndpoints.tokenCheck
            #expect(reason("https://a.example/{client_id}/t") == (isCheck ? nil : "INVALID_ENDPOINT"))
        }
    }

    @Test func trustIsConsistent() {
        func reason(_ trust: ProviderTrust) -> String? { self.reason { $0.trust = trust } }
        #expect(reason(ProviderTrust(level: .always)) == nil)
        #expect(reason(ProviderTrust(level: .domains, domains: ["a.example", "b-1.example"])) == nil)
        let many = (0..<51).map { Text("a\($0).example") }
        #expect(reason(ProviderTrust(level: .domains, domains: Array(many.prefix(50)))) == nil)
        #expect(reason(ProviderTrust(level: .domains, domains: many)) == "INVALID_TRUST")
        #expect(reason(ProviderTrust(level: .domains)) == "INVALID_TRUST")
        #expect(reason(ProviderTrust(level: .always, domains: ["a.example"])) == "INVALID_TRUST")
        for domain in [
            "", "a", "A.example", "a..example", ".example", "a.example.", "a b.example", "@a.example", "*.a.b",
        ]
            as [Text]
        {
            #expect(reason(ProviderTrust(level: .domains, domains: [domain])) == "INVALID_TRUST", "\(domain)")
        }
        for (name, value) in [("", "x"), ("x", ""), (text(129), "x"), ("x", text(257))] as [(Text, Text)] {
            let claim = RequiredClaim(name: name, value: value)
            #expect(reason(ProviderTrust(level: .always, requiredClaim: claim)) == "INVALID_TRUST")
        }
        let most = RequiredClaim(name: text(128), value: text(256))
        #expect(reason(ProviderTrust(level: .always, requiredClaim: most)) == nil)
    }

    @Test func anAppleKeyIsApples() {
        #expect(reason { ($0.providerID, $0.apple) = ("apple.com", AppleKey(teamID: "T1", keyID: "K1")) } == nil)
        #expect(reason { $0.apple = AppleKey(teamID: "T1", keyID: "K1") } == "INVALID_APPLE_KEY")
        for key in [AppleKey(), AppleKey(teamID: "T"), AppleKey(teamID: "T", keyID: "K/")] {
            #expect(reason { ($0.providerID, $0.apple) = ("apple.com", key) } == "INVALID_APPLE_KEY")
        }
    }

    @Test func aClientSecretHasALimitAndForApplesKeyAForm() {
        func reason(_ secret: Secret, apple: AppleKey? = nil) -> String? {
            var provider = Provider()
            provider.apple = apple
            do throws(Failure) {
                try ProviderRules.checkSecret(secret, of: provider)
                return nil
            } catch {
                return error.reason
            }
        }
        #expect(reason(Secret([UInt8](repeating: 1, count: 4_096))) == nil)
        #expect(reason(Secret([UInt8](repeating: 1, count: 4_097))) == "INVALID_CLIENT_SECRET")
        #expect(reason(Secret("no PEM"), apple: AppleKey(teamID: "T", keyID: "K")) == "INVALID_CLIENT_SECRET")
        #expect(reason(.empty, apple: AppleKey(teamID: "T", keyID: "K")) == nil)
    }

    /// Without `apple`, the private key itself would be sent as the client secret.
    @Test func applesPrivateKeyIsNoSecretToSend() {
        let pem = PEM.encode("PRIVATE KEY", SigningKey.generate(.es256).exportDER())
        func reason(_ id: Text, _ secret: Secret) -> String? {
            failure { try ProviderRules.checkSecret(secret, of: Provider(providerID: id)) }?.reason
        }
        #expect(reason("apple.com", pem) == "INVALID_CLIENT_SECRET")
        #expect(reason("apple.com", Secret("ready-made")) == nil)
        #expect(reason("apple.com", .empty) == nil)
        // Another provider may have any secret.
        #expect(reason("oidc.corp", pem) == nil)
    }

    @Test func aSecretIsReadBeforeItsProviderIsKnown() throws {
        let pem = PEM.encode("PRIVATE KEY", SigningKey.generate(.es256).exportDER())
        var provider = Provider()
        provider.apple = AppleKey(teamID: "T", keyID: "K")
        let secret = try NewClientSecret(pem, of: "apple.com")
        #expect(secret.isApplePrivateKey && !secret.isEmpty)
        try ProviderRules.checkSecret(secret, of: provider)
        // Other providers have no such key, so nothing is read for them.
        #expect(try !NewClientSecret(pem, of: "oidc.corp").isApplePrivateKey)
        #expect(try NewClientSecret(.empty, of: "apple.com").isEmpty)
        #expect(throws: Failure.self) { try NewClientSecret(Secret([UInt8](repeating: 1, count: 4_097)), of: "x") }
    }

    /// OpenSSL reads only these: it may take long for other kinds.
    @Test func onlyAKeyOfP256MayBeApples() {
        func isOfP256(_ algorithm: SigningAlgorithm) -> Bool {
            ApplePrivateKey.isOfP256(SigningKey.generate(algorithm).exportDER().withBytes { [UInt8]($0) })
        }
        #expect(isOfP256(.es256) && !isOfP256(.edDSA) && !isOfP256(.rs256))
        for der in [[], [0x30], [0x30, 0xFF], [0x30, 0x80], [0x31, 0]] as [[UInt8]] {
            #expect(!ApplePrivateKey.isOfP256(der))
        }
    }

    @Test func noLongKeyIsReadAsApples() {
        func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
            [tag, 0x82, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
        }
        func isRead(_ der: [UInt8]) -> Bool {
            ApplePrivateKey.read(PEM.encode("PRIVATE KEY", Secret(der))) != nil
        }
        let der = SigningKey.generate(.es256).exportDER().withBytes { [UInt8]($0) }
        #expect(isRead(der))
        // The same key with an attribute (RFC 5208 §5): its header of three bytes is replaced.
        func withAttribute(byteCount: Int) -> [UInt8] {
            let value = element(0x31, element(0x0C, [UInt8](repeating: 0x61, count: byteCount)))
            return element(0x30, der.dropFirst(3) + element(0xA0, element(0x30, [0x06, 3, 0x55, 4, 3] + value)))
        }
        let overhead = withAttribute(byteCount: 0).count
        #expect(isRead(withAttribute(byteCount: ApplePrivateKey.derByteCountMax - overhead)))
        #expect(!isRead(withAttribute(byteCount: ApplePrivateKey.derByteCountMax - overhead + 1)))
    }
}
