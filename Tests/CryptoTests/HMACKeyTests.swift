import Base
import Crypto
import Testing

/// Vectors: RFC 4231 §4, RFC 5869 appendix A.
@Suite struct HMACKeyTests {
    @Test(arguments: [
        (
            [UInt8](repeating: 0x0B, count: 20), utf8("Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            utf8("Jefe"), utf8("what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xAA, count: 20), [UInt8](repeating: 0xDD, count: 50),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
        ),
        (
            [UInt8](repeating: 0xAA, count: 131), utf8("Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
        (
            [UInt8](repeating: 0xAA, count: 131),
            utf8(
                "This is a test using a larger than block-size key and a larger than block-size data. The key needs "
                    + "to be hashed before being used by the HMAC algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"
        ),
    ])
    func tagsAreThoseOfRFC4231(key: [UInt8], message: [UInt8], tag: String) {
        let hmac = HMACKey(Secret(key))
        #expect(hmac.tag(of: message) == hex(tag))
        #expect(hmac.isValid(tag: hex(tag), of: message))
    }

    @Test func everyOtherTagIsRefused() {
        let hmac = HMACKey(Secret("key"))
        let tag = hmac.tag(of: utf8("message"))
        for index in tag.indices {
            var wrong = tag
            wrong[index] ^= 1
            #expect(!hmac.isValid(tag: wrong, of: utf8("message")))
        }
        #expect(!hmac.isValid(tag: [], of: utf8("message")))
        #expect(!hmac.isValid(tag: Array(tag.dropLast()), of: utf8("message")))
        #expect(!hmac.isValid(tag: tag + [0], of: utf8("message")))
        #expect(!hmac.isValid(tag: tag, of: utf8("massage")))
        #expect(!HMACKey(Secret("Key")).isValid(tag: tag, of: utf8("message")))
    }

    @Test func keysAreDerivedAsInRFC5869() {
        let ikm = Secret([UInt8](repeating: 0x0B, count: 22))
        #expect(
            HKDF.derive(
                key: ikm, salt: hex("000102030405060708090a0b0c"), info: hex("f0f1f2f3f4f5f6f7f8f9"), count: 42
            ).bytes
                == hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"))
        #expect(
            HKDF.derive(key: ikm, info: [], count: 42).bytes
                == hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"))
        #expect(
            HKDF.derive(
                key: Secret(Array(0x00...0x4F)), salt: Array(0x60...0xAF), info: Array(0xB0...0xFF), count: 82
            ).bytes
                == hex(
                    "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
                        + "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"))
    }

    @Test func theLongestDerivedKeyStartsLikeAShortOne() {
        let long = HKDF.derive(key: Secret("key"), info: utf8("x"), count: 255 * 32).bytes
        #expect(long.count == 8160)
        #expect(HKDF.derive(key: Secret("key"), info: utf8("x"), count: 1).bytes == [long[0]])
    }
}
