import Base
import Federation
import JSON
import Messages
import TestSupport
import Testing

/// JWTs that a provider signs with the keys of its ID tokens and that are not ID tokens of this client.
extension ProviderTokenTests {
    @Test(
        arguments: [
            ("JWT", nil), ("jwt", nil), ("ID", nil), (nil, nil), ("at+jwt", .malformed), ("AT+JWT", .malformed),
            ("application/at+jwt", .malformed), ("logout+jwt", .malformed), ("secevent+jwt", .malformed),
        ] as [(Text?, FederationError.Flaw?)])
    func `A token of another type is no ID token`(_ type: Text?, _ flaw: FederationError.Flaw?) async throws {
        try await withFederation { fixture in
            let token = fixture.provider.sign(
                fixture.provider.claims(.ann), header: [("typ", type.map { .string($0) })])
            #expect(await fixture.error(.idToken(token)) == flaw.map { .flawed($0) })
        }
    }

    /// OpenID Connect Back-Channel Logout 1.0 §2.4: it has the issuer, audience and subject of an ID token, no nonce.
    @Test func `A logout token without a type is no ID token`() async throws {
        try await withFederation { fixture in
            let event: JSONValue = ["http://schemas.openid.net/event/backchannel-logout": [:]]
            let token = fixture.provider.sign(fixture.provider.claims(.ann).with("events", event))
            #expect(await fixture.error(.idToken(token)) == .flawed(.malformed))
        }
    }

    /// The other application may use our API, for which it has this access token. It may not sign in as its users.
    @Test func `An access token that another application asked for is no ID token`() async throws {
        try await withFederation { fixture in
            let claims = fixture.provider.claims(.ann).with("scp", "access_as_user")
            let foreign = fixture.provider.sign(claims.with("azp", "client-2"))
            #expect(await fixture.error(.idToken(foreign)) == .flawed(.wrongAudience))
            for party in [JSONValue.string("client-1"), .null] {
                let own = fixture.provider.sign(fixture.provider.claims(.ann).with("azp", party))
                #expect(await fixture.error(.idToken(own)) == nil)
            }
            let odd = fixture.provider.sign(claims.with("azp", ["client-1"]))
            #expect(await fixture.error(.idToken(odd)) == .flawed(.wrongAudience))
            // An application of ours on another platform.
            let configuration = fixture.configuration { $0.additionalAudiences = ["client-2"] }
            #expect(await fixture.error(.idToken(foreign), configuration) == nil)
        }
    }

    /// Microsoft's access tokens of version 1.0 have `appid`, Okta's have `cid`, those of RFC 9068 have `client_id`.
    @Test(arguments: ["azp", "client_id", "appid", "cid"] as [Text])
    func `An access token may name the application that asked for it in any of four claims`(_ name: Text) async throws {
        try await withFederation { fixture in
            let claims = fixture.provider.claims(.ann)
            for party in ["client-2", "", ["client-1"], 1] as [JSONValue] {
                let foreign = fixture.provider.sign(claims.with(name, party))
                #expect(await fixture.error(.idToken(foreign)) == .flawed(.wrongAudience))
                // Another claim that names this client does not help.
                let both = fixture.provider.sign(claims.with("azp", "client-1").with(name, party))
                if name != "azp" { #expect(await fixture.error(.idToken(both)) == .flawed(.wrongAudience)) }
            }
            for party in ["client-1", .null] as [JSONValue] {
                let own = fixture.provider.sign(claims.with(name, party))
                #expect(await fixture.error(.idToken(own)) == nil)
            }
        }
    }

    @Test(arguments: ["client_id", "appid", "cid"] as [Text])
    func `Google's tokens name another application in azp only`(_ name: Text) async throws {
        try await withFederation { fixture in
            let claims = fixture.provider.claims(.ann).replacing("iss", "https://accounts.google.com")
            let configuration = fixture.configuration("google.com") { $0.issuer = .empty }
            let token = fixture.provider.sign(claims.with("azp", "android").with(name, "android"))
            #expect(await fixture.error(.idToken(token), configuration) == .flawed(.wrongAudience))
        }
    }

    @Test(arguments: ["https://accounts.google.com", "accounts.google.com"] as [Text])
    func `Google's tokens may be asked for by an Android application`(_ issuer: Text) async throws {
        try await withFederation { fixture in
            let claims = fixture.provider.claims(.ann).replacing("iss", .string(issuer)).with("azp", "android")
            let configuration = fixture.configuration("google.com") { $0.issuer = .empty }
            #expect(await fixture.error(.idToken(fixture.provider.sign(claims)), configuration) == nil)
        }
    }
}
