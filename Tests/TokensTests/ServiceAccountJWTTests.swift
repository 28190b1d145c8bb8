import Base
import Crypto
import JSON
import TestSupport
import Testing

@testable import Tokens

@Suite struct ServiceAccountJWTTests {
    private static let now = TokenForge.now
    private static let claims: JSONValue = [
        "iss": "a@p.test", "sub": "a@p.test", "aud": "x", "iat": 1_800_000_000, "exp": 1_800_003_600,
    ]

    private func jwt(_ claims: JSONValue = claims) -> ServiceAccountJWT? {
        ServiceAccountJWT(
            ServiceAccountJWT.sign(claims.serialized(), with: TokenForge.key(.es256)), limits: Limits())
    }

    private func timesError(_ claims: JSONValue, now: Timestamp = now) -> TokenError? {
        do throws(TokenError) {
            try jwt(claims)?.checkTimes(now: now)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: SigningAlgorithm.allCases)
    func whatAKeySignsIsReadBackAndIsOfThatKeyOnly(_ algorithm: SigningAlgorithm) throws {
        let key = TokenForge.key(algorithm)
        let token = ServiceAccountJWT.sign(Self.claims.serialized(), type: "t", with: key)
        let jwt = try #require(ServiceAccountJWT(token, limits: Limits()))
        #expect(jwt.email == "a@p.test" && jwt.audience == "x" && jwt.type == "t" && jwt.claims == Self.claims)
        #expect(jwt.keyID == key.publicKey.keyID && jwt.issuedAt == Self.now)
        for other in SigningAlgorithm.allCases {
            #expect(jwt.isSigned(by: TokenForge.key(other).publicKey) == (other == algorithm))
        }
        #expect(!jwt.isSigned(by: SigningKey.generate(.es256).publicKey))
    }

    @Test func anAlgorithmTheKeyIsNotOfIsRefusedThoughTheSignatureFits() throws {
        let header: JSONValue = ["alg": "RS256", "kid": "k"]
        let token = TokenForge.token(header: header, payload: Self.claims, signedBy: .es256)
        let jwt = try #require(ServiceAccountJWT(token, limits: Limits()))
        #expect(!jwt.isSigned(by: TokenForge.key(.es256).publicKey))
    }

    @Test(
        arguments: [
            ("iss", nil), ("iss", ""), ("iss", "b@p.test"), ("iss", 1), ("sub", nil), ("sub", "b@p.test"),
            ("sub", .null), ("aud", nil), ("aud", ["x"]), ("aud", 1), ("iat", nil), ("iat", "1800000000"),
            ("iat", .double(1_800_000_000.5)), ("iat", .null), ("exp", nil), ("exp", .double(1.8e9)), ("exp", true),
            ("nbf", "1800000000"), ("nbf", .null), ("nbf", .double(1.5)),
        ] as [(Text, JSONValue?)])
    func aClaimOfAnotherFormIsNoSuchJWT(_ name: Text, _ value: JSONValue?) {
        #expect(jwt() != nil)
        #expect(jwt(Self.claims.with(name, value)) == nil)
    }

    @Test func aPayloadIsOneJSONObject() {
        for payload in ["", "null", "[]", "1", "{", #"{"iss":"a","iss":"a"}"#] {
            let token = TokenForge.token(header: TokenForge.header().serialized(), payload: utf8(payload))
            #expect(ServiceAccountJWT(token, limits: Limits()) == nil)
        }
    }

    @Test func timesHoldAtTheirEdges() {
        let start = Int64(1_800_000_000)
        func times(_ iat: Int64, _ exp: Int64, nbf: Int64? = nil) -> TokenError? {
            let claims = Self.claims.with("iat", .integer(start + iat)).with("exp", .integer(start + exp))
            return timesError(claims.with("nbf", nbf.map { .integer(start + $0) }))
        }
        #expect(times(0, 3_600) == nil && times(0, 1) == nil && times(-3_599, 1) == nil && times(60, 3_660) == nil)
        #expect(times(0, 3_601) == .invalid)
        #expect(times(61, 3_000) == .invalid)
        #expect(times(10, 10) == .invalid && times(10, 5) == .invalid)
        #expect(times(-3_600, 0) == .expired && times(-10, -5) == .expired)
        #expect(times(0, 3_600, nbf: 60) == nil && times(0, 3_600, nbf: -9_999) == nil)
        #expect(times(0, 3_600, nbf: 61) == .invalid)
    }

    @Test func extremeTimesTrapNowhere() {
        for iat in [Int64.min, -1, 0, Int64.max] {
            for exp in [Int64.min, -1, 0, 1, Int64.max] {
                let claims = Self.claims.with("iat", .integer(iat)).with("exp", .integer(exp))
                for nbf in [nil, JSONValue.integer(.min), .integer(.max)] {
                    #expect(timesError(claims.with("nbf", nbf)) != nil)
                }
            }
        }
    }
}
