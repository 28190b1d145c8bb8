import Base
import Crypto
import JSON
import TestSupport
import Testing

@testable import Tokens

@Suite struct IssuedTokenVerifierTests {
    private let forge = TokenForge()
    private let now = TokenForge.now

    // MARK: What is accepted

    @Test(arguments: SigningAlgorithm.allCases) func aGenuineTokenSaysWhoTheUserIs(algorithm: SigningAlgorithm) throws {
        let token = try forge.verifier.verify(TokenForge.token(algorithm), now: now)
        #expect(token.uid == "u1" && token.tenantID == "acme" && token.signInProvider == "password")
        #expect(token.sessionID == Hex.decode("00112233445566778899aabbccddeeff".utf8))
        #expect(token.generation == 1_799_999_000_000_000)
        #expect(token.authTime.seconds == 1_799_999_000)
        #expect(token.issuedAt.seconds == 1_799_999_990 && token.expiresAt.seconds == 1_800_003_590)
        #expect(token.payload == TokenForge.payload.serialized())
    }

    @Test func aTokenOfTheDefaultPoolNamesNoTenant() throws {
        let payload = TokenForge.payload.with("firebase", ["sign_in_provider": "anonymous"])
        #expect(try forge.verifier.verify(TokenForge.token(payload: payload), now: now).tenantID.isEmpty)
    }

    @Test func aTokenAtTheSizeLimitIsAcceptedAndOneAboveIsNot() throws {
        let limits = Limits()
        // Four characters of base64url are three bytes of payload.
        let byteCount = TokenForge.token(payload: TokenForge.payload.with("pad", "")).count
        let padding = (limits.tokenMax - byteCount) / 4 * 3
        func token(_ count: Int) -> [UInt8] {
            let pad = Text(unchecked: [UInt8](repeating: UInt8(ascii: "x"), count: count))
            return TokenForge.token(payload: TokenForge.payload.with("pad", .string(pad)))
        }
        let atMost = try #require((padding - 4...padding + 4).last { token($0).count <= limits.tokenMax })
        #expect(token(atMost).count > limits.tokenMax - 3)
        #expect(forge.error(token(atMost)) == nil)
        #expect(forge.error(token(atMost + 3)) == .invalid)
        #expect(forge.error([UInt8](repeating: UInt8(ascii: "A"), count: 1_000_000)) == .invalid)
        #expect(forge.error([]) == .invalid)
    }

    // MARK: Header

    @Test(arguments: [
        "none", "None", "NONE", "nOnE", "", "HS256", "HS384", "RS256", "RS384", "RS512", "PS256", "ES256", "ES256K",
        "ES384", "EdDSA", "Ed25519", "es256", "rs256", "ES256 ", "dir", "A128KW",
    ])
    func theAlgorithmIsTheKeysOwn(name: String) {
        for algorithm in SigningAlgorithm.allCases where algorithm.rawValue != name {
            let header = TokenForge.header(algorithm).with("alg", .string(Text(name)))
            #expect(forge.error(TokenForge.token(header: header, signedBy: algorithm)) == .invalid)
            // The token without a signature, as "none" wants it.
            var unsigned = parts(TokenForge.token(header: header, signedBy: algorithm))
            unsigned[2] = []
            #expect(forge.error(joined(unsigned)) == .invalid)
        }
    }

    @Test func aPublicKeyIsNoHMACSecret() {
        for algorithm in SigningAlgorithm.allCases {
            let publicKey = TokenForge.key(algorithm).publicKey
            let jwkMembers = publicKey.jwk.members.map { $0.value.bytes }
            for secret in [publicKey.exportSPKI(), publicKey.thumbprint, publicKey.keyID.bytes] + jwkMembers {
                for name: Text in ["HS256", Text(algorithm.rawValue)] {
                    let header = TokenForge.header(algorithm).with("alg", .string(name))
                    let signed = joined([
                        Base64.url.encode(header.serialized()), Base64.url.encode(TokenForge.payload.serialized()),
                    ])
                    let tag = HMACKey(Secret(secret)).tag(of: signed)
                    #expect(forge.error(joined([signed, Base64.url.encode(tag)])) == .invalid)
                }
            }
        }
    }

    @Test func oneKeysSignatureIsNotAnothers() {
        for named in SigningAlgorithm.allCases {
            for signing in SigningAlgorithm.allCases where signing != named {
                #expect(forge.error(TokenForge.token(header: TokenForge.header(named), signedBy: signing)) == .invalid)
            }
        }
        // The algorithm is right, but the key is the attacker's own, offered in the header.
        let own = SigningKey.generate(.es256)
        let jwk = JSONValue.object(own.publicKey.jwk.members.map { .init(Text("\($0.name)"), .string($0.value)) })
        let header = TokenForge.header().with("jwk", jwk).serialized()
        let signed = joined([Base64.url.encode(header), Base64.url.encode(TokenForge.payload.serialized())])
        #expect(forge.error(joined([signed, Base64.url.encode(own.sign(signed))])) == .invalid)
    }

    @Test(
        arguments: [
            nil, "jwt", "Jwt", "JWT ", "at+jwt", "application/jwt", "", "postern-caller+jwt", 1, .null, ["JWT"],
        ] as [JSONValue?])
    func onlyTheTypeOfAnIDTokenIsAccepted(type: JSONValue?) {
        #expect(forge.error(TokenForge.token(header: TokenForge.header().with("typ", type))) == .invalid)
    }

    @Test(arguments: [nil, "", "unknown", 1, .null] as [JSONValue?])
    func onlyAPublishedKeyIsAccepted(keyID: JSONValue?) {
        #expect(forge.error(TokenForge.token(header: TokenForge.header().with("kid", keyID))) == .invalid)
    }

    @Test func onlyATokenThatItsKeyCouldMakeGoodIsOfAnUnknownKey() {
        let token = TokenForge.token()
        let others = [
            TokenForge.token(payload: TokenForge.payload.with("aud", "q")),
            TokenForge.token(header: TokenForge.header().with("kid", "unknown")),
            TokenForge.token(header: TokenForge.header().with("typ", "jwt")),
            TokenForge.token(header: TokenForge.header().with("alg", "HS256")),
        ]
        forge.published.publish(KeySet(entries: []))
        #expect(forge.error(token) == .unknownKey)
        #expect(forge.error(token, now: Timestamp(seconds: 1_800_003_590)) == .invalid)
        for other in others { #expect(forge.error(other) == .invalid) }
        forge.published.publish(KeySet(entries: [], revokedIDs: [TokenForge.key(.es256).publicKey.keyID]))
        #expect(forge.error(token) == .invalid)
    }

    // MARK: Payload

    private static let wrongValues: [Text: [JSONValue?]] = [
        "iss": [nil, "https://issuer.test/q", "https://issuer.test/p/", "", 1, ["https://issuer.test/p"]],
        "aud": [nil, "q", "P", ["p"], .null],
        "sub": [nil, "u2", 1],
        "user_id": [nil, "u2", "u1 "],
        "iat": [nil, .double(1_799_999_990), "1799999990"],
        "exp": [nil, .null, .double(1.8e300), true],
        "auth_time": [nil, .double(0.5)],
        "gen": [nil, "1"],
        "sid": [
            nil, "", 1, "00112233445566778899aabbccddee", "00112233445566778899aabbccddeeff00",
            "zz112233445566778899aabbccddeeff",
        ],
        "firebase": [
            nil, [], "password", [:], ["sign_in_provider": 1], ["tenant": "acme"],
            ["sign_in_provider": "password", "tenant": 1], ["sign_in_provider": "password", "tenant": .null],
        ],
    ]

    @Test(arguments: wrongValues.keys.sorted()) func everyClaimIsThereAndOfItsType(name: Text) {
        for value in Self.wrongValues[name] ?? [] {
            let token = TokenForge.token(payload: TokenForge.payload.with(name, value))
            #expect(forge.error(token) == .invalid, "\(value.map { "\($0)" } ?? "missing")")
        }
    }

    @Test(arguments: [
        "", "{}", "[]", "null", "1", "\"{}\"", "{", "not json", #"{"sub":"u1","sub":"u1"}"#,
    ])
    func aPayloadIsOneJSONObject(payload: String) {
        let token = TokenForge.token(header: TokenForge.header().serialized(), payload: utf8(payload))
        #expect(forge.error(token) == .invalid)
    }

    @Test func aRepeatedClaimIsRefusedWhereverItIs() {
        let payload = String(decoding: TokenForge.payload.serialized(), as: UTF8.self)
        for repeated in [
            #""sub":"u1","#, #""sub":"admin","#, #""aud":"q","#, #""\u0073ub":"admin","#, #""x":{"y":1,"y":2},"#,
            #""firebase":{},"#,
        ] {
            let changed = "{" + repeated + payload.dropFirst()
            let token = TokenForge.token(header: TokenForge.header().serialized(), payload: utf8(changed))
            #expect(forge.error(token) == .invalid, "\(repeated)")
        }
    }

    @Test func aTokenInATokenAndDeepClaimsAreRefused() {
        let inner = TokenForge.token()
        #expect(forge.error(TokenForge.token(header: TokenForge.header().serialized(), payload: inner)) == .invalid)
        func nested(_ count: Int) -> JSONValue { (1..<count).reduce([]) { inner, _ in [inner] } }
        #expect(forge.error(TokenForge.token(payload: TokenForge.payload.with("x", nested(15)))) == nil)
        #expect(forge.error(TokenForge.token(payload: TokenForge.payload.with("x", nested(16)))) == .invalid)
    }

    // MARK: Times

    @Test func aTokenLivesUntilItsExpiryAndNotAMicrosecondLonger() {
        let token = TokenForge.token()
        let end = Timestamp(seconds: 1_800_003_590)
        #expect(forge.error(token, now: end - .microseconds(1)) == nil)
        #expect(forge.error(token, now: end) == .expired)
        #expect(forge.error(token, now: Timestamp(microseconds: .max)) == .expired)
    }

    @Test func aTokenFromTheFutureIsInvalidBeyondAMinute() {
        let token = TokenForge.token()
        let issued = Timestamp(seconds: 1_799_999_990)
        #expect(forge.error(token, now: issued - .seconds(60)) == nil)
        #expect(forge.error(token, now: issued - .seconds(60) - .microseconds(1)) == .early)
        #expect(forge.error(token, now: Timestamp(microseconds: .min)) == .early)
    }

    @Test func timesAtTheEndsOfTheNumbersDoNotTrap() {
        let last = Int64.max / 1_000_000
        let extremes: [Int64] = [.min, -last, -1, 0, last, last + 1, .max]
        for seconds in extremes {
            func error(_ name: Text) -> TokenError? {
                forge.error(TokenForge.token(payload: TokenForge.payload.with(name, .integer(seconds))))
            }
            #expect(error("exp") == (seconds > 0 ? nil : .expired), "\(seconds)")
            #expect(error("iat") == (seconds > 0 ? .early : nil), "\(seconds)")
            #expect(error("auth_time") == nil, "\(seconds)")
            #expect(error("gen") == nil, "\(seconds)")
        }
    }

    // MARK: Remembered tokens

    @Test func aTokenThatIsVerifiedAgainIsTheSameObject() throws {
        let token = TokenForge.token()
        let first = try forge.verifier.verify(token, now: now)
        #expect(try forge.verifier.verify(token, now: now + .seconds(1)) === first)
    }

    @Test func aRememberedTokenStillExpires() throws {
        let token = TokenForge.token()
        let known = try forge.verifier.verify(token, now: now)
        #expect(forge.error(token, now: known.expiresAt) == .expired)
        #expect(forge.error(token, now: known.issuedAt - .seconds(61)) == .early)
        #expect(forge.error(token) == nil)
    }

    @Test func aRememberedTokenGoesWithItsKey() throws {
        let token = TokenForge.token()
        _ = try forge.verifier.verify(token, now: now)
        forge.publish(retiresAt: now + .seconds(10))
        #expect(forge.error(token, now: now + .seconds(10) - .microseconds(1)) == nil)
        #expect(forge.error(token, now: now + .seconds(10)) == .invalid)
        forge.published.publish(KeySet(entries: []))
        #expect(forge.error(token) == .unknownKey)
    }

    /// A set with the same keys and times is the same set, so that fetching the keys again verifies nothing again.
    @Test func aRememberedTokenIsVerifiedAgainWhenTheKeysChange() throws {
        let token = TokenForge.token()
        let first = try forge.verifier.verify(token, now: now)
        forge.publish()
        #expect(try forge.verifier.verify(token, now: now) === first)
        forge.publish(retiresAt: now + .hours(2))
        let second = try forge.verifier.verify(token, now: now)
        #expect(second !== first && second.uid == first.uid)
        #expect(try forge.verifier.verify(token, now: now) === second)
        forge.published.publish(KeySet(entries: []))
        #expect(forge.error(token) == .unknownKey)
        forge.publish()
        #expect(forge.error(token) == nil)
    }

    @Test func theAnswerForATokenIsKeptFromItsSecondUseOn() throws {
        let token = try forge.verifier.verify(TokenForge.token(), now: now)
        var count = 0
        func answer() -> [UInt8] {
            token.answer {
                count += 1
                return [1, 2, 3]
            }
        }
        for expected in [1, 2, 2, 2] {
            #expect(answer() == [1, 2, 3])
            #expect(count == expected)
        }
    }

    @Test func whatIsRememberedIsTheWholeToken() throws {
        let token = TokenForge.token()
        _ = try forge.verifier.verify(token, now: now)
        for index in token.indices {
            var changed = token
            changed[index] ^= 1
            let error = forge.error(changed)
            // A change of the header may name another key.
            #expect(error == .invalid || error == .unknownKey, "\(index)")
        }
        #expect(forge.error(token + [UInt8(ascii: "A")]) == .invalid)
        #expect(forge.error(token.dropLast()) == .invalid)
    }

    @Test func aRefusedTokenIsNotRemembered() {
        let future = TokenForge.token(payload: TokenForge.payload.with("iat", 1_800_000_100))
        #expect(forge.error(future) == .early)
        #expect(forge.error(future, now: now + .seconds(100)) == nil)
    }
}
