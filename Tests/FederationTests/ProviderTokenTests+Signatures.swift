import Base
import Crypto
import Federation
import JSON
import Messages
import Rules
import TestSupport
import Testing

/// The signatures of providers' ID tokens.
extension ProviderTokenTests {
    @Test(arguments: ["none", "None", "NONE", "nOnE", "", "HS256", "HS384", "HS512", "RS512", "PS256", "ES256"])
    func theHeaderDoesNotChooseTheAlgorithm(_ algorithm: String) async throws {
        try await withFederation { fixture in
            let honest = fixture.provider.idToken(.ann)
            let changed = fixture.provider.sign(
                fixture.provider.claims(.ann), header: [("alg", .string(Text(algorithm)))])
            #expect(await fixture.error(.idToken(changed)) == .flawed(.unknownKey))
            var unsigned = parts(changed)
            unsigned[2] = []
            #expect(await fixture.error(.idToken(joined(unsigned))) == .flawed(.unknownKey))
            #expect(await fixture.error(.idToken(honest)) == nil)
        }
    }

    /// CVE-2015-9235: the public key, which everybody has, as the secret of an HMAC.
    @Test func anHMACWithThePublicKeyIsNoSignature() async throws {
        try await withFederation { fixture in
            let key = newKey(.rs256)
            fixture.provider.setKeys([key])
            let spki = key.publicKey.exportSPKI()
            let pem = "-----BEGIN PUBLIC KEY-----\n\(Base64.standard.encodeToString(spki))\n-----END PUBLIC KEY-----\n"
            for algorithm: Text in ["HS256", "RS256"] {
                for secret in [spki, Array(pem.utf8)] {
                    var forged = parts(
                        fixture.provider.sign(
                            fixture.provider.claims(.ann), key: key, header: [("alg", .string(algorithm))]))
                    let message = bytes(joined(Array(forged[..<2])))
                    forged[2] = Base64.url.encode(HMACKey(Secret(secret)).tag(of: message))
                    let error = await fixture.error(.idToken(joined(forged)))
                    #expect(error == .flawed(algorithm == "HS256" ? .unknownKey : .badSignature))
                }
            }
        }
    }

    /// The group order of P-256 and its neighbours; DER instead of r ‖ s; other lengths.
    @Test func anECDSASignatureIsRThenSInRange() async throws {
        try await withFederation { fixture in
            let key = newKey(.es256)
            fixture.provider.setKeys([key])
            let order = try #require(
                Hex.decode(Array("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551".utf8)))
            let above = Array(order.dropLast()) + [0x52]
            let zero = [UInt8](repeating: 0, count: 32)
            let one = Array(zero.dropLast()) + [1]
            let honest = parts(fixture.provider.idToken(.ann))
            let signature = try #require(Base64.url.decode(honest[2]))
            let (r, s) = (Array(signature[..<32]), Array(signature[32...]))
            func integer(_ value: [UInt8]) -> [UInt8] {
                let digits = value[0] >= 0x80 ? [0] + value : value
                return [2, UInt8(digits.count)] + digits
            }
            let der = [0x30, UInt8(integer(r).count + integer(s).count)] + integer(r) + integer(s)
            let wrong: [[UInt8]] = [
                zero + zero, zero + s, r + zero, order + s, r + order, above + s, r + above, one + one, order + order,
                [UInt8](repeating: 0xFF, count: 64), [], r, Array((r + s).dropLast()), r + s + [0], [0] + r + s, s + r,
                der,
            ]
            for signature in wrong {
                let token = joined([honest[0], honest[1], Base64.url.encode(signature)])
                #expect(await fixture.error(.idToken(token)) == .flawed(.badSignature), "\(Hex.encode(signature))")
            }
            #expect(await fixture.error(.idToken(joined(honest))) == nil)
        }
    }

    @Test func everyBitOfATokenCounts() async throws {
        try await withFederation { fixture in
            let honest = bytes(fixture.provider.idToken(.ann))
            for index in stride(from: 0, to: honest.count, by: 7) {
                var changed = honest
                changed[index] ^= 1
                #expect(await fixture.error(.idToken(Secret(changed))) != nil, "byte \(index)")
            }
        }
    }
}
