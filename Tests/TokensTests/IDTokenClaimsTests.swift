import Base
import JSON
import TestSupport
import Testing

@testable import Tokens

@Suite struct IDTokenClaimsTests {
    private func claims(_ change: (inout IDTokenClaims) -> Void = { _ in }) -> IDTokenClaims {
        var claims = IDTokenClaims()
        claims.issuer = "https://issuer.test/p"
        claims.audience = "p"
        claims.uid = "u1"
        claims.issuedAt = Timestamp(microseconds: 1_800_000_000_999_999)
        claims.expiresAt = Timestamp(microseconds: 1_800_003_600_999_999)
        claims.authTime = Timestamp(microseconds: 1_799_000_000_000_001)
        claims.sessionID = (0..<16).map { UInt8($0) }
        claims.generation = 1_799_000_000_000_001
        claims.signInProvider = "password"
        change(&claims)
        return claims
    }

    private func text(_ claims: IDTokenClaims) -> String { String(decoding: claims.payload(), as: UTF8.self) }
    private func json(_ claims: IDTokenClaims) throws -> JSONValue { try JSONValue(parsing: claims.payload()) }

    @Test func theSmallestPayload() {
        #expect(
            text(claims())
                == #"{"iss":"https://issuer.test/p","aud":"p","auth_time":1799000000,"user_id":"u1","sub":"u1","#
                + #""iat":1800000000,"exp":1800003600,"sid":"000102030405060708090a0b0c0d0e0f","#
                + #""gen":1799000000000001,"firebase":{"identities":{},"sign_in_provider":"password"}}"#)
    }

    @Test func theLargestPayload() {
        let all = claims { claims in
            claims.tenantID = "acme"
            claims.email = "ada@example.com"
            claims.isEmailVerified = true
            claims.displayName = "Ada \"L\""
            claims.photoURL = "https://p.test/a"
            claims.phoneNumber = "+4930123456"
            claims.identities = [
                .init(providerID: "email", identifiers: ["ada@example.com"]),
                .init(providerID: "google.com", identifiers: ["1", "2"]),
            ]
            claims.customClaims = utf8(#"{"role":"admin","n":[1,{"x":null}]}"#)
            claims.isSynthetic = true
        }
        #expect(
            text(all)
                == #"{"name":"Ada \"L\"","picture":"https://p.test/a","role":"admin","n":[1,{"x":null}],"#
                + #""iss":"https://issuer.test/p","aud":"p","auth_time":1799000000,"user_id":"u1","sub":"u1","#
                + #""iat":1800000000,"exp":1800003600,"email":"ada@example.com","email_verified":true,"#
                + #""phone_number":"+4930123456","sid":"000102030405060708090a0b0c0d0e0f","#
                + #""gen":1799000000000001,"synthetic":true,"firebase":{"identities":{"email":["ada@example.com"],"#
                + #""google.com":["1","2"]},"sign_in_provider":"password","tenant":"acme"}}"#)
    }

    @Test func `What can be left out goes one by one, and claims that somebody set stay`() throws {
        let large = claims { claims in
            claims.email = "ada@example.com"
            claims.displayName = "Ada"
            claims.photoURL = "https://p.test/a"
            claims.signInProvider = "b.test"
            claims.identities = ["email", "a.test", "b.test", "c.test"].map {
                .init(providerID: $0, identifiers: ["1"])
            }
            claims.customClaims = utf8(#"{"role":"admin"}"#)
        }
        let optional = ["picture", "c.test", "a.test", "b.test", "name"]
        var payload = large.payload()
        #expect(large.payload(byteCountMax: payload.count) == payload)
        for count in 1...optional.count {
            payload = try #require(large.payload(byteCountMax: payload.count - 1))
            let text = String(decoding: payload, as: UTF8.self)
            #expect(optional.filter { !text.contains("\"\($0)\":") } == Array(optional.prefix(count)))
            #expect(text.contains(#""role":"admin""#) && text.contains(#""email":["1"]"#))
        }
        #expect(large.payload(byteCountMax: payload.count - 1) == nil)
    }

    @Test func anAnonymousUserSaysSo() throws {
        #expect(try json(claims { $0.signInProvider = "anonymous" })["provider_id"] == "anonymous")
        #expect(try json(claims())["provider_id"] == nil)
    }

    @Test func anUnverifiedEmailIsFalseAndNoEmailIsNothing() throws {
        #expect(try json(claims { $0.email = "a@b.c" })["email_verified"] == false)
        #expect(try json(claims { $0.isEmailVerified = true })["email_verified"] == nil)
    }

    @Test func aCustomNameAndPictureOverrideTheProfiles() throws {
        let both = claims { claims in
            claims.displayName = "Profile"
            claims.photoURL = "https://profile.test"
            claims.customClaims = utf8(#"{"name":"Custom","picture":null}"#)
        }
        #expect(try json(both)["name"] == "Custom")
        #expect(try json(both)["picture"] == .null)
        #expect(try json(claims { $0.customClaims = utf8(#"{"name":7}"#) })["name"] == 7)
    }

    /// Reserved names were refused when the claims were set. A list that grew later must not make two claims of one
    /// name.
    @Test(arguments: [
        "iss", "aud", "auth_time", "user_id", "sub", "iat", "exp", "email", "email_verified", "phone_number", "sid",
        "gen", "synthetic", "firebase", "provider_id",
    ])
    func aReservedNameNeverComesFromCustomClaims(name: String) throws {
        let forged = claims { $0.customClaims = utf8(#"{"a":1,""# + name + #"":"forged","b":2}"#) }
        let payload = try json(forged)
        #expect(payload[Text(name)] != "forged")
        #expect(payload["a"] == 1 && payload["b"] == 2)
    }

    @Test(arguments: ["", "{}", "[]", "null", "{", "not json", #"{"a":1,"a":2}"#])
    func whatIsNoObjectAddsNothing(custom: String) {
        #expect(text(claims { $0.customClaims = utf8(custom) }) == text(claims()))
    }

    @Test func timesBefore1970AndAtTheEndsDoNotTrap() throws {
        for microseconds in [Int64.min, -1, 0, .max] {
            let odd = claims { $0.issuedAt = Timestamp(microseconds: microseconds) }
            #expect(try json(odd)["iat"]?.integer == Timestamp(microseconds: microseconds).seconds)
        }
    }

    @Test func everyPayloadIsOneTheVerifierReads() throws {
        var random = SeededRandom.printed()
        let texts: [Text] = ["", "a", "\"\\", "é😀", "\u{1}\n", "name", "https://x.test/?a=b&c"]
        for _ in 0..<500 {
            func pick() -> Text { texts[random.below(texts.count)] }
            let claims = claims { claims in
                claims.uid = pick()
                claims.tenantID = pick()
                claims.email = pick()
                claims.displayName = pick()
                claims.photoURL = pick()
                claims.phoneNumber = pick()
                claims.signInProvider = pick()
                claims.generation = Int64(bitPattern: random.next())
                claims.sessionID = random.bytes(16)
                claims.identities = random.below(2) == 0 ? [] : [.init(providerID: pick(), identifiers: [pick()])]
                claims.customClaims = utf8(#"{"name":"x","é":[{"y":-1.5e3}]}"#)
            }
            let read = VerifiedToken(
                payload: claims.payload(), keyID: "k", issuer: "https://issuer.test/p", audience: "p")
            let token = try #require(read)
            #expect(token.uid == claims.uid && token.tenantID == claims.tenantID)
            #expect(token.sessionID == claims.sessionID && token.generation == claims.generation)
            #expect(token.issuedAt.seconds == claims.issuedAt.seconds && token.signInProvider == claims.signInProvider)
        }
    }
}
