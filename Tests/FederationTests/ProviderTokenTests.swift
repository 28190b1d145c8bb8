import Base
import Crypto
import Federation
import JSON
import Messages
import Rules
import TestSupport
import Testing

/// ID tokens, genuine and not: what a foreign provider can send, and what an attacker makes of it.
@Suite struct ProviderTokenTests {
    private typealias User = FakeIdentityProvider.User

    func bytes(_ secret: Secret) -> [UInt8] { secret.withBytes { [UInt8]($0) } }

    func parts(_ token: Secret) -> [[UInt8]] {
        bytes(token).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Array.init)
    }

    func joined(_ parts: [[UInt8]]) -> Secret { Secret(Array(parts.joined(separator: [UInt8(ascii: ".")]))) }

    @Test func aGenuineTokenTellsWhoItIs() async throws {
        try await withFederation { fixture in
            let profile = try await fixture.prove(.idToken(fixture.provider.idToken(.ann)))
            #expect(profile.subject == "4711" && profile.email == "ann@gmail.com" && profile.isEmailVerified == true)
            #expect(profile.displayName == "Ann" && profile.photoURL == "https://img.example/ann.png")
        }
    }

    @Test(arguments: SigningAlgorithm.allCases)
    func everyAlgorithmIsVerified(_ algorithm: SigningAlgorithm) async throws {
        try await withFederation { fixture in
            let key = newKey(algorithm)
            fixture.provider.setKeys([key])
            let profile = try await fixture.prove(.idToken(fixture.provider.idToken(.ann)))
            #expect(profile.subject == "4711")
            let foreign = fixture.provider.sign(
                fixture.provider.claims(.ann), key: newKey(algorithm),
                header: [("kid", .string(key.publicKey.keyID))])
            #expect(await fixture.error(.idToken(foreign)) == .flawed(.badSignature))
        }
    }

    @Test(
        arguments: [
            ("iss", "https://evil.example", .wrongIssuer), ("iss", nil, .wrongIssuer), ("iss", 7, .wrongIssuer),
            ("iss", "", .wrongIssuer), ("aud", "client-2", .wrongAudience), ("aud", nil, .wrongAudience),
            ("aud", [], .wrongAudience), ("aud", ["client-2"], .wrongAudience), ("aud", 1, .wrongAudience),
            ("aud", ["client-1", "client-2"], .wrongAudience), ("aud", ["client-1", 7], .wrongAudience),
            ("aud", ["client-1"], nil), ("exp", 1_799_999_939, .expired), ("exp", 1_799_999_940, .expired),
            ("exp", 1_799_999_941, nil), ("exp", nil, .expired), ("exp", "1900000000", .expired),
            ("exp", .double(1_799_999_999.5), nil), ("exp", .double(1e300), .expired),
            ("exp", .integer(.min), .expired),
            ("exp", .integer(.max), nil), ("iat", 1_800_000_060, nil), ("iat", 1_800_000_061, .notYetValid),
            ("iat", nil, .notYetValid), ("iat", true, .notYetValid), ("nbf", 1_800_000_060, nil),
            ("nbf", 1_800_000_061, .notYetValid), ("nbf", "x", .notYetValid), ("sub", nil, .missingSubject),
            ("sub", "", .missingSubject), ("sub", 7, .missingSubject), ("azp", "client-2", .wrongAudience),
        ] as [(Text, JSONValue?, FederationError.Flaw?)])
    func aClaimIsChecked(_ name: Text, _ value: JSONValue?, _ flaw: FederationError.Flaw?) async throws {
        try await withFederation { fixture in
            let token = fixture.provider.sign(fixture.provider.claims(.ann).replacing(name, value))
            #expect(await fixture.error(.idToken(token)) == flaw.map { .flawed($0) })
        }
    }

    @Test func aSubjectHasAtMost255Bytes() async throws {
        try await withFederation { fixture in
            for (count, error) in [(255, nil), (256, FederationError.flawed(.missingSubject))] {
                let user = User(Text(String(repeating: "s", count: count)))
                #expect(await fixture.error(.idToken(fixture.provider.idToken(user))) == error)
            }
        }
    }

    @Test func severalAudiencesNeedToSayWhoAsked() async throws {
        try await withFederation { fixture in
            let claims = fixture.provider.claims(.ann).replacing("aud", ["client-1", "client-2"])
            for (party, error) in [("client-1", nil), ("client-2", FederationError.flawed(.wrongAudience))] {
                let token = fixture.provider.sign(claims.replacing("azp", .string(Text(party))))
                #expect(await fixture.error(.idToken(token)) == error)
            }
        }
    }

    @Test func anAdditionalAudienceIsTaken() async throws {
        try await withFederation { fixture in
            let token = fixture.provider.idToken(.ann, audience: "client-ios")
            #expect(await fixture.error(.idToken(token)) == .flawed(.wrongAudience))
            let configuration = fixture.configuration { $0.additionalAudiences = ["client-ios"] }
            #expect(await fixture.error(.idToken(token), configuration) == nil)
        }
    }

    @Test func theNonceMustMatchAsItIsOrAsItsHash() async throws {
        try await withFederation { fixture in
            let hash = Hex.encode(Digest.sha256(Array("n1".utf8)))
            let cases: [(claim: Text, given: Text, flaw: FederationError.Flaw?)] = [
                ("n1", "n1", nil), (hash, "n1", nil), ("n1", "n2", .wrongNonce), ("", "n1", .wrongNonce),
                ("", "", nil), ("n1", "", .missingNonce), (hash, "", .missingNonce), ("n1", hash, .wrongNonce),
                (Text(hash.string.uppercased()), "n1", .wrongNonce),
            ]
            for (claim, given, flaw) in cases {
                let token = fixture.provider.idToken(.ann, nonce: claim)
                let error = await fixture.error(.idToken(token), nonce: given)
                #expect(error == flaw.map { .flawed($0) }, "\(claim) \(given)")
                // The application may leave out only a nonce that it cannot know.
                let lenient = fixture.configuration { $0.acceptUnknownNonce = true }
                let accepted = await fixture.error(.idToken(token), nonce: given, lenient)
                #expect(accepted == (flaw == .missingNonce ? nil : flaw.map { .flawed($0) }), "\(claim) \(given)")
            }
            // A nonce that is not a text is still a nonce.
            for nonce in [JSONValue.integer(0), .bool(false), [], [:]] {
                let token = fixture.provider.sign(fixture.provider.claims(.ann).with("nonce", nonce))
                #expect(await fixture.error(.idToken(token)) == .flawed(.missingNonce), "\(nonce)")
            }
        }
    }

    @Test func aThiefOfATokenWithAHashedNonceCannotGiveTheHashForTheNonce() async throws {
        try await withFederation { fixture in
            let hash = Hex.encode(Digest.sha256(Array("n1".utf8)))
            let token = fixture.provider.idToken(.ann, nonce: hash)
            #expect(await fixture.error(.idToken(token), nonce: "n1") == nil)
            #expect(await fixture.error(.idToken(token), nonce: hash) == .flawed(.wrongNonce))
            let lenient = fixture.configuration { $0.acceptUnknownNonce = true }
            #expect(await fixture.error(.idToken(token), nonce: hash, lenient) == .flawed(.wrongNonce))
            // A nonce of another form is compared as it is: nothing tells that it is a hash.
            for nonce in [Text("A\(hash.string.dropFirst())"), Text("\(hash.string.dropLast())")] {
                let other = fixture.provider.idToken(.ann, nonce: nonce)
                #expect(await fixture.error(.idToken(other), nonce: nonce) == nil, "\(nonce)")
            }
        }
    }

    // MARK: Form

    @Test func otherSpellingsOfATokenAreNone() async throws {
        try await withFederation { fixture in
            let honest = parts(fixture.provider.idToken(.ann))
            let dots = Array("..".utf8)
            var wrong: [Secret] = [
                Secret(""), Secret("."), Secret(dots), joined(Array(honest[..<2])), joined(honest + [[]]),
                joined(honest + honest), joined([[]] + honest), joined([honest[0], honest[1], []] + [[]]),
                Secret(bytes(joined(honest)) + [0x0A]), Secret([0x20] + bytes(joined(honest))),
            ]
            for part in 0..<3 {
                for suffix in ["=", "==", "+", "/", "\n", "\0", "é", "A=A"] {
                    var changed = honest
                    changed[part] += Array(suffix.utf8)
                    wrong.append(joined(changed))
                }
            }
            for token in wrong {
                let error = await fixture.error(.idToken(token))
                #expect(error == .flawed(.malformed), "\(String(decoding: bytes(token).suffix(20), as: UTF8.self))")
            }
        }
    }

    /// Two spellings of one token would be two tokens for a recipient that remembers the tokens it has seen.
    @Test func unusedBitsAreZero() async throws {
        try await withFederation { fixture in
            let honest = parts(fixture.provider.idToken(.ann))
            let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
            // 256 bytes of signature leave two characters with four unused bits.
            #expect(honest[2].count % 4 == 2)
            for bit in [1, 2, 4, 8] {
                var changed = honest
                let last = try #require(alphabet.firstIndex(of: honest[2].last ?? 0))
                changed[2][changed[2].count - 1] = alphabet[last ^ bit]
                #expect(await fixture.error(.idToken(joined(changed))) == .flawed(.malformed))
            }
        }
    }

    @Test(arguments: [
        #"{"sub":"a","sub":"b"}"#, #"{"sub":"a","\u0073ub":"b"}"#, "[]", "null", "1", "\"x\"", "", "{", "{}{}",
        #"{"sub":"a\u0000"}"#, #"{"iat":9223372036854775808}"#, "\u{FEFF}{}",
        #"{"x":"# + String(repeating: "[", count: 100) + String(repeating: "]", count: 100) + "}",
    ])
    func claimsAreOneJSONObject(_ payload: String) async throws {
        try await withFederation { fixture in
            let key = newKey(.es256)
            fixture.provider.setKeys([key])
            let header: JSONValue = ["alg": "ES256", "kid": .string(key.publicKey.keyID)]
            let signed =
                Base64.url.encode(header.serialized()) + [UInt8(ascii: ".")] + Base64.url.encode(Array(payload.utf8))
            let token = signed + [UInt8(ascii: ".")] + Base64.url.encode(key.sign(signed))
            #expect(await fixture.error(.idToken(Secret(token))) == .flawed(.malformed))
        }
    }

    @Test func extensionsThatChangeTheMeaningAreRefused() async throws {
        try await withFederation { fixture in
            for change: (Text, JSONValue?) in [("crit", ["exp"]), ("b64", false), ("alg", nil), ("kid", 7), ("typ", 1)]
            {
                let token = fixture.provider.sign(fixture.provider.claims(.ann), header: [change])
                #expect(await fixture.error(.idToken(token)) == .flawed(.malformed), "\(change.0)")
            }
        }
    }

    /// A key that comes in the token is the attacker's.
    @Test func keysInTheHeaderAreNotUsed() async throws {
        try await withFederation { fixture in
            let own = newKey(.es256)
            let members = own.publicKey.jwk.members.map { JSONValue.Member(Text("\($0.name)"), .string($0.value)) }
            let token = fixture.provider.sign(
                fixture.provider.claims(.ann), key: own,
                header: [("jwk", .object(members)), ("jku", .string(Text(fixture.provider.server.url + "/mine")))])
            #expect(await fixture.error(.idToken(token)) == .flawed(.unknownKey))
            #expect(fixture.provider.server.requestCount("/mine") == 0)
        }
    }

    @Test func aTokenAtTheLimitIsTakenAndOneAboveNotLookedAt() async throws {
        try await withFederation { fixture in
            let limit = Limits().providerTokenMax
            func token(_ padding: Int) -> Secret {
                let claims = fixture.provider.claims(.ann)
                return fixture.provider.sign(
                    claims.replacing("groups", .string(Text(String(repeating: "g", count: padding)))))
            }
            let base = token(0).byteCount
            // Three bytes take four characters.
            let most = (limit - base) / 4 * 3
            let atLimit = token(most + ((limit - base) % 4 == 0 ? 0 : 1))
            #expect(atLimit.byteCount <= limit && atLimit.byteCount > limit - 4)
            #expect(await fixture.error(.idToken(atLimit)) == nil)
            #expect(await fixture.error(.idToken(token(most + 6))) == .flawed(.malformed))
        }
    }

    @Test func aTokenWithoutAKeyIDIsVerifiedWithAllKeys() async throws {
        try await withFederation { fixture in
            let keys = [newKey(.es256), newKey(.es256)]
            fixture.provider.setKeys(keys)
            for key in keys {
                let token = fixture.provider.sign(fixture.provider.claims(.ann), key: key, header: [("kid", nil)])
                #expect(await fixture.error(.idToken(token)) == nil)
            }
            let foreign = fixture.provider.sign(
                fixture.provider.claims(.ann), key: newKey(.es256), header: [("kid", nil)])
            #expect(await fixture.error(.idToken(foreign)) == .flawed(.badSignature))
        }
    }

    // MARK: Microsoft

    @Test func microsoftsIssuerNamesTheUsersDirectory() async throws {
        try await withFederation { fixture in
            let tid: Text = "9188040d-6c67-4c5b-b112-36a304b66dad"
            let configuration = fixture.configuration("microsoft.com") {
                $0.issuer = Text("\(fixture.provider.issuer)/{tenantid}/v2.0")
            }
            func error(_ issuer: String, tid: JSONValue?) async -> FederationError? {
                let claims = fixture.provider.claims(.ann).replacing("iss", .string(Text(issuer)))
                return await fixture.error(.idToken(fixture.provider.sign(claims.replacing("tid", tid))), configuration)
            }
            let base = fixture.provider.issuer
            #expect(await error("\(base)/\(tid)/v2.0", tid: .string(tid)) == nil)
            #expect(await error("\(base)/\(tid)/v2.0", tid: nil) == .flawed(.wrongIssuer))
            #expect(await error("\(base)/{tenantid}/v2.0", tid: "{tenantid}") == .flawed(.wrongIssuer))
            #expect(await error("\(base)/x/v2.0", tid: "x") == .flawed(.wrongIssuer))
            let other = "9188040d-6c67-4c5b-b112-36a304b66dae"
            #expect(await error("\(base)/\(other)/v2.0", tid: .string(tid)) == .flawed(.wrongIssuer))
            #expect(await error("https://evil.example/\(tid)/v2.0", tid: .string(tid)) == .flawed(.wrongIssuer))
            #expect(await error("\(base)/\(tid.string.uppercased())/v2.0", tid: .string(tid)) == .flawed(.wrongIssuer))
        }
    }

    /// In 2023 a stolen key of personal accounts signed tokens for companies (Storm-0558).
    @Test func aKeyForAnotherIssuerSignsNothing() async throws {
        try await withFederation { fixture in
            let (personal, company): (Text, Text) = (
                "9188040d-6c67-4c5b-b112-36a304b66dad", "72f988bf-86f1-41af-91ab-2d7cd011db47"
            )
            let base = fixture.provider.issuer
            let configuration = fixture.configuration("microsoft.com") { $0.issuer = Text("\(base)/{tenantid}/v2.0") }
            let (personalKey, anyKey) = (newKey(.es256), newKey(.es256))
            fixture.provider.setKeys([personalKey, anyKey])
            fixture.provider.setIssuer(ofKey: personalKey.publicKey.keyID, Text("\(base)/\(personal)/v2.0"))
            fixture.provider.setIssuer(ofKey: anyKey.publicKey.keyID, Text("\(base)/{tenantid}/v2.0"))
            func error(tid: Text, key: SigningKey) async -> FederationError? {
                let claims = fixture.provider.claims(.ann).replacing("iss", .string(Text("\(base)/\(tid)/v2.0")))
                let token = fixture.provider.sign(claims.replacing("tid", .string(tid)), key: key)
                return await fixture.error(.idToken(token), configuration)
            }
            #expect(await error(tid: personal, key: personalKey) == nil)
            #expect(await error(tid: company, key: anyKey) == nil)
            #expect(await error(tid: company, key: personalKey) == .flawed(.unknownKey))
        }
    }
}
