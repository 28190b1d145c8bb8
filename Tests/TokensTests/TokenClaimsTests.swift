import Base
import JSON
import TestSupport
import Testing

@testable import Tokens

/// Claims are scanned, and parsed where the scanner declines: both find the same.
@Suite struct TokenClaimsTests {
    private let payload = TokenForge.payload.serialized()

    private func scanned(_ payload: [UInt8]) -> TokenClaims? {
        payload.withUnsafeBytes {
            try? TokenClaims(scanning: $0, issuer: TokenForge.issuer, audience: TokenForge.audience)
        }
    }

    private func parsed(_ payload: [UInt8]) -> TokenClaims? {
        TokenClaims(parsing: payload, issuer: TokenForge.issuer, audience: TokenForge.audience)
    }

    private func read(_ payload: [UInt8]) -> TokenClaims? {
        TokenClaims(payload, issuer: TokenForge.issuer, audience: TokenForge.audience)
    }

    @Test func `The claims of an ordinary token are scanned`() throws {
        let claims = try #require(scanned(payload))
        #expect(claims == parsed(payload))
        #expect(claims.uid == "u1" && claims.tenantID == "acme" && claims.signInProvider == "password")
        var whole = IDTokenClaims()
        whole.issuer = TokenForge.issuer
        whole.audience = TokenForge.audience
        whole.uid = "ада"
        whole.sessionID = [UInt8](repeating: 7, count: 16)
        whole.customClaims = [UInt8](#"{"roles":["a","b"],"deep":{"a":[{},[],null,true,-12]},"name":"é"}"#.utf8)
        whole.identities = [.init(providerID: "google.com", identifiers: ["1", "2"])]
        whole.signInProvider = "google.com"
        #expect(scanned(whole.payload()) != nil)
        #expect(scanned(whole.payload()) == parsed(whole.payload()))
    }

    /// Each text takes the place of `"gen":…` in a payload that is in order.
    @Test(arguments: [
        #""gen":1,"a":"\u0041""#, #""gen":1,"a":1.5"#, #""gen":1,"a":1e3"#, #""gen":1 "#, #""gen":1,"a":-0"#,
        #""gen":1,"a":1234567890123456789"#, #""gen":1,"a":[[[[[[[[1]]]]]]]]"#, #""gen":-5"#, #""gen":01"#,
        #""gen":1,"#,
        #""gen":1,"gen":1"#, #""gen":1,"a":{"b":1,"b":2}"#, #""gen":"1""#, #""gen":1,"a":tru"#, #""gen":1,"a":"b"#,
        #""gen":"#,
        #""gen":1,"firebase":{}"#, #""gen":1,"\u0061":1"#, #""gen":1.0"#, #""gen":1,"a":nulls"#, #""gen":1,"a":[1,]"#,
    ])
    func `What the scanner does not know is parsed, and what is wrong is refused`(_ member: String) {
        let text = String(decoding: payload, as: UTF8.self)
        let changed = [UInt8](text.replacing(#""gen":1799999000000000"#, with: member).utf8)
        #expect(changed != payload)
        #expect(read(changed) == parsed(changed))
        if let scanned = scanned(changed) { #expect(scanned == parsed(changed)) }
    }

    @Test func `More members than the scanner takes are parsed`() {
        for count in [10, 20, 21, 22, 23, 40] {
            let more = (0..<count).map { #""m\#($0)":1,"# }.joined()
            let text = String(decoding: payload, as: UTF8.self)
            let changed = [UInt8](("{" + more + text.dropFirst()).utf8)
            #expect(read(changed) != nil && read(changed) == parsed(changed), "\(count)")
        }
    }

    @Test func `Random changes of a payload are read alike`() {
        var random = SeededRandom.printed()
        let alphabet = [UInt8](#"{}[]":,\0123456789-eE.tfn aAé/"#.utf8)
        var scannedCount = 0
        for _ in 0..<20_000 {
            let changed = random.mutated(payload, alphabet: alphabet)
            guard let scanned = scanned(changed) else { continue }
            scannedCount += 1
            #expect(scanned == parsed(changed), "\(String(decoding: changed, as: UTF8.self))")
        }
        #expect(scannedCount > 100)
    }
}
