import Base
import TestSupport
import Testing

@testable import Rules

@Suite struct TOTPTests {
    /// The secret of the examples of both RFCs.
    private let secret = Secret("12345678901234567890")

    /// RFC 4226, appendix D.
    @Test func theCodesOfRFC4226() {
        let expected = [
            "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489",
        ]
        for (counter, code) in expected.enumerated() {
            #expect(TOTP.code(secret: secret, counter: UInt64(counter)) == [UInt8](code.utf8))
        }
    }

    /// RFC 6238, appendix B, SHA-1.
    @Test(arguments: [
        (59, "94287082"), (1_111_111_109, "07081804"), (1_111_111_111, "14050471"), (1_234_567_890, "89005924"),
        (2_000_000_000, "69279037"), (20_000_000_000, "65353130"),
    ])
    func theCodesOfRFC6238(_ seconds: Int64, _ code: String) throws {
        let step = TOTP.step(at: Timestamp(seconds: seconds))
        #expect(TOTP.code(secret: secret, counter: UInt64(step), digits: 8) == [UInt8](code.utf8))
    }

    @Test func aCodeIsGoodOneStepAroundItsOwnAndOnce() {
        let made = Timestamp(seconds: 1_800_000_000)
        let step = TOTP.step(at: made)
        let code = TOTP.code(secret: secret, counter: UInt64(step))
        func judge(_ seconds: Int64, after lastStep: Int64 = 0) -> Int64? {
            TOTP.step(of: code, secret: secret, now: made + .seconds(seconds), after: lastStep)
        }
        #expect(judge(0) == step && judge(30) == step && judge(59) == step && judge(-30) == step)
        #expect(judge(60) == nil && judge(-31) == nil)
        #expect(judge(0, after: step) == nil && judge(0, after: step + 1) == nil && judge(0, after: step - 1) == step)
        // A step that lies an hour ahead was used when the clock was wrong.
        #expect(judge(0, after: step + 120) == step)
        #expect(TOTP.step(of: [], secret: secret, now: made, after: 0) == nil)
        #expect(TOTP.step(of: code, secret: secret, now: Timestamp(microseconds: .min), after: 0) == nil)
    }

    @Test func theURIHasTheIssuerAndTheAccount() {
        let uri = TOTP.uri(secret: secret, issuer: "Ärger & Co", account: "ada@example.com")
        let text = uri.withBytes { String(decoding: $0, as: UTF8.self) }
        #expect(
            text == "otpauth://totp/%C3%84rger%20%26%20Co%3Aada%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
                + "&issuer=%C3%84rger%20%26%20Co&algorithm=SHA1&digits=6&period=30")
    }

    /// RFC 4648, section 10, without the padding.
    @Test(arguments: [
        ("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"), ("fooba", "MZXW6YTB"),
        ("foobar", "MZXW6YTBOI"),
    ])
    func theExamplesOfBase32(_ bytes: String, _ text: String) {
        #expect(Base32.encode(Array(bytes.utf8)) == [UInt8](text.utf8))
    }
}
