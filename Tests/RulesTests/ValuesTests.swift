import Base
import Testing

@testable import Rules
@testable import Tokens

@Suite struct ValuesTests {
    private let limits = Limits()

    private func text(_ count: Int, _ character: String = "x") -> Text {
        Text(String(repeating: character, count: count))
    }

    @Test func aUIDHas1To128Bytes() {
        for (count, expected) in [(0, "INVALID_UID"), (1, nil), (128, nil), (129, "INVALID_UID")] as [(Int, String?)] {
            #expect(reason { try Values.checkUID(text(count), limits: limits) } == expected, "\(count)")
        }
        // The limit counts bytes, not characters.
        #expect(reason { try Values.checkUID(text(64, "é"), limits: limits) } == nil)
        #expect(reason { try Values.checkUID(text(65, "é"), limits: limits) } == "INVALID_UID")
    }

    @Test func aTenantIDIsShortAndPlain() {
        func refusal(_ tenantID: String) -> Failure? { failure { try Values.checkTenantID(Text(tenantID)) } }
        for right in ["acme", "a-b-", "0000", "----", String(repeating: "z", count: 64)] {
            #expect(refusal(right) == nil, "\(right)")
        }
        for wrong in [
            "", "abc", String(repeating: "z", count: 65), "Acme", "ac_me", "ac me", "ac.me", "acmé", "acme\n", "acme/",
        ] {
            #expect(refusal(wrong)?.reason == "INVALID_TENANT_ID", "\(wrong)")
        }
        #expect(refusal("x")?.violations.first?.field == "tenant_id")
    }

    @Test func aDisplayNameHasAtMost256BytesAndNoTricks() {
        // The test has only this closure: Swift 6.3 makes one of two of a type when one is in `#expect`.
        func refusal(_ name: Text) -> Failure? {
            failure { try Values.checkDisplayName(name, field: "f", limits: limits) }
        }
        for right in ["", "Ada", "Ada \"L\" <x>", "Ádá 😀 علي", String(repeating: "é", count: 128)] {
            #expect(refusal(Text(right)) == nil, "\(right)")
        }
        #expect(refusal(text(257))?.reason == "INVALID_DISPLAY_NAME")
        for scalar: UInt32 in [0x01, 0x09, 0x0A, 0x1B, 0x7F, 0x85, 0x9F, 0x202A, 0x202B, 0x202E, 0x2066, 0x2069] {
            let name = Text("a" + String(Character(Unicode.Scalar(scalar)!)) + "b")
            let refused = refusal(name)
            #expect(refused?.reason == "INVALID_DISPLAY_NAME" && refused?.violations.first?.field == "f")
        }
    }

    @Test func aContinueURLIsHTTPSOrOfThisMachine() {
        func reason(_ url: String) -> String? {
            failure { try Values.checkContinueURL(Text(url), limits: limits) }?.reason
        }
        for right in [
            "", "https://a", "https://a/#/b", "http://localhost", "http://localhost:80/a", "http://127.0.0.1?a",
            "http://127.0.0.1:8080#a", "http://[::1]:8080/a", "https://a/" + String(repeating: "a", count: 2_038),
        ] {
            #expect(reason(right) == nil, "\(right.prefix(30))")
        }
        for wrong in [
            "http://a", "http://localhost.example", "http://localhost@a", "http://127.0.0.1:80@a", "http://127.0.0.11",
            "http://localhost:80a", "http://", "javascript:alert(1)", "https://a b", "https://é", "//a", "a",
            "https://", "https:///x", "https://?x", "https://#x", "https://a:99999", "https://a:0", "https://a:",
            "https://user@a", "https://a\\b", "https://a/" + String(repeating: "a", count: 2_039),
        ] {
            #expect(reason(wrong) == "INVALID_CONTINUE_URI", "\(wrong.prefix(30))")
        }
    }

    @Test func aPhotoURLIsHTTPInPlainASCII() {
        for right in ["", "https://a", "http://a/b?c=%20#d", "https://a/\(String(repeating: "a", count: 2_038))"] {
            #expect(reason { try Values.checkPhotoURL(Text(right), limits: limits) } == nil, "\(right.prefix(20))")
        }
        for wrong in [
            "javascript:alert(1)", "data:image/png;base64,AA", "ftp://a", "//a", "a", "HTTPS://a", " https://a",
            "https://a b", "https://é", "https://a\n", "https://", "https:///x", "http://?x", "https://a:99999",
            "https://a@b", "https://a/" + String(repeating: "a", count: 2_039),
        ] {
            #expect(
                reason { try Values.checkPhotoURL(Text(wrong), limits: limits) } == "INVALID_PHOTO_URL",
                "\(wrong.prefix(20))")
        }
    }

    @Test func aPhoneNumberIsE164() {
        for right in ["", "+1415", "+14155550123", "+999999999999999"] {
            #expect(reason { try Values.checkPhoneNumber(Text(right)) } == nil, "\(right)")
        }
        for wrong in [
            "+", "+141", "+0123456", "14155550123", "+1 415", "+1-415-555", "+1415555012x", "++14155",
            "+1234567890123456",
            "00141555", "+١٢٣٤٥", "+14155550123\n", " +14155550123",
        ] {
            #expect(reason { try Values.checkPhoneNumber(Text(wrong)) } == "INVALID_PHONE_NUMBER", "\(wrong)")
        }
    }

    @Test func aNewPasswordHas6To4096Bytes() {
        for (count, expected) in [
            (0, "WEAK_PASSWORD"), (5, "WEAK_PASSWORD"), (6, nil), (4_096, nil), (4_097, "PASSWORD_TOO_LONG"),
        ] as [(Int, String?)] {
            let password = Secret([UInt8](repeating: 0x61, count: count))
            #expect(reason { try Values.checkNewPassword(password, limits: limits) } == expected, "\(count)")
        }
        #expect(reason { try Values.checkNewPassword(Secret("ééé"), limits: limits) } == nil)
    }

    @Test func anEmailIsRefusedByItsFieldsName() throws {
        #expect(try Values.email("A@b.c", form: .ascii, limits: limits).canonical == "a@b.c")
        let failure = failure { _ = try Values.email("nobody", field: "new_email", form: .ascii, limits: limits) }
        #expect(failure?.reason == "INVALID_EMAIL" && failure?.violations.first?.field == "new_email")
    }

    // MARK: Custom claims

    private func reasonOfClaims(_ json: [UInt8]) -> String? {
        reason { try Values.checkCustomClaims(json, limits: limits) }
    }

    @Test(arguments: [
        "", "{}", #"{"role":"admin","n":[1,{"a":[2]}]}"#, #"{"name":"x","picture":"y"}"#, #" {"a":null} "#,
    ])
    func anObjectIsAccepted(json: String) {
        #expect(reasonOfClaims(utf8(json)) == nil)
    }

    @Test(arguments: [
        "null", "[]", "1", "\"a\"", "{", "{}{}", "not json", #"{"a":1,"a":2}"#, #"{"a":1,"\u0061":2}"#, #"{a:1}"#, " ",
        #"{"a":[[[[[1]]]]]}"#, #"{"a":"\u0000"}"#, #"{"a":1e999}"#,
    ])
    func anythingElseIsNot(json: String) {
        #expect(reasonOfClaims(utf8(json)) == "INVALID_CLAIMS")
    }

    @Test func claimsHaveAtMost1000Bytes() {
        func claims(_ count: Int) -> [UInt8] { utf8("{\"a\":\"" + String(repeating: "x", count: count - 8) + "\"}") }
        #expect(claims(1_000).count == 1_000)
        #expect(reasonOfClaims(claims(1_000)) == nil)
        #expect(reasonOfClaims(claims(1_001)) == "CLAIMS_TOO_LARGE")
        // The size is checked first, whatever the content is.
        #expect(reasonOfClaims([UInt8](repeating: 0xFF, count: 1_001)) == "CLAIMS_TOO_LARGE")
    }

    @Test func everyReservedNameIsForbiddenHoweverItIsSpelled() {
        for name in Values.reservedClaims {
            #expect(reasonOfClaims(utf8("{\"\(name)\":1}")) == "FORBIDDEN_CLAIM", "\(name)")
            let first = String(name.bytes[0], radix: 16)
            #expect(reasonOfClaims(utf8("{\"\\u00\(first)\(name.string.dropFirst())\":1}")) == "FORBIDDEN_CLAIM")
            // A name is reserved only at the top level, and only as exactly this name.
            #expect(reasonOfClaims(utf8("{\"a\":{\"\(name)\":1}}")) == nil)
            #expect(reasonOfClaims(utf8("{\"\(name.string.uppercased())\":1,\"\(name)_\":2}")) == nil)
        }
    }

    /// docs/protocol.md and the API's documentation have this list, too.
    @Test func reservedIsWhatIdentityToolkitReservesAndWhatRevokesTokens() {
        let identityToolkits: Set<Text> = [
            "acr", "amr", "at_hash", "aud", "auth_time", "azp", "cnf", "c_hash", "exp", "firebase", "iat", "iss", "jti",
            "nbf", "nonce", "sub",
        ]
        #expect(Values.reservedClaims == identityToolkits.union(["sid", "gen"]))
    }

    @Test func whatElseTheTokenSaysItselfIsTakenAndIgnored() {
        let ignored = IDTokenClaims.ownNames.subtracting(Values.reservedClaims)
        #expect(
            ignored == ["user_id", "provider_id", "email", "email_verified", "phone_number", "synthetic"])
        for name in ignored {
            let json = utf8("{\"role\":1,\"\(name)\":1,\"name\":\"x\",\"a\":{\"\(name)\":1}}")
            #expect(reasonOfClaims(json) == nil)
            #expect(Values.ignoredClaims(in: json) == [name])
        }
        #expect(Values.ignoredClaims(in: []).isEmpty && Values.ignoredClaims(in: utf8("[")).isEmpty)
        #expect(Values.ignoredClaims(in: utf8("{\"a\":1}")).isEmpty)
    }
}
