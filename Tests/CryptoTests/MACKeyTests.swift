import Base
import TestSupport
import Testing

@testable import Crypto

@Suite struct MACKeyTests {
    private func tag(_ mac: MACKey, _ value: [UInt8], at key: [UInt8]) -> [UInt8] {
        value.withUnsafeBytes { value in key.withUnsafeBytes { mac.tag(of: value, at: $0) } }
    }

    private func isValid(_ mac: MACKey, _ tag: [UInt8], _ value: [UInt8], at key: [UInt8]) -> Bool {
        tag.withUnsafeBytes { tag in
            value.withUnsafeBytes { value in key.withUnsafeBytes { mac.isValid(tag: tag, of: value, at: $0) } }
        }
    }

    private func sipHash(_ message: [UInt8], under key: [UInt8]) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: 16)
        output.withUnsafeMutableBytes { output in
            message.withUnsafeBytes { message in
                key.withUnsafeBytes { MACKey.hash(message, under: $0, into: output) }
            }
        }
        return output
    }

    /// github.com/veorq/SipHash, vectors.h: vectors_sip128.
    @Test func theHashIsSipHash24With128Bits() {
        let key = [UInt8](0..<16)
        #expect(sipHash([], under: key) == hex("a3817f04ba25a8e66df67214c7550293"))
        #expect(sipHash([0], under: key) == hex("da87c1d86b99af44347659119b22fc45"))
    }

    @Test func aTagIsTheValuesHashUnderTheRecordsKey() {
        let tableKey = [UInt8](0..<16)
        let recordKey = sipHash(utf8("key"), under: tableKey)
        let mac = MACKey(Secret(tableKey))
        #expect(tag(mac, utf8("value"), at: utf8("key")) == sipHash(utf8("value"), under: recordKey))
    }

    @Test func aTagHoldsForOneTableKeyAndValueOnly() {
        var random = SeededRandom.printed()
        let mac = MACKey(Secret(random.bytes(16)))
        let key = random.bytes(40)
        let value = random.bytes(300)
        let good = tag(mac, value, at: key)
        #expect(good.count == 16)
        #expect(isValid(mac, good, value, at: key))
        for index in value.indices {
            var changed = value
            changed[index] ^= 0x80
            #expect(!isValid(mac, good, changed, at: key))
        }
        for index in good.indices {
            var changed = good
            changed[index] ^= 1
            #expect(!isValid(mac, changed, value, at: key))
        }
        #expect(!isValid(mac, good, value, at: random.bytes(40)))
        #expect(!isValid(mac, good, Array(value.dropLast()), at: key))
        #expect(!isValid(mac, Array(good.dropLast()), value, at: key))
        #expect(!isValid(mac, [], value, at: key))
        #expect(!isValid(MACKey(Secret(random.bytes(16))), good, value, at: key))
    }

    @Test func bytesCannotMoveBetweenKeyAndValue() {
        let mac = MACKey(Secret([UInt8](repeating: 1, count: 16)))
        #expect(tag(mac, utf8("bc"), at: utf8("a")) != tag(mac, utf8("c"), at: utf8("ab")))
        #expect(tag(mac, utf8("a"), at: []) != tag(mac, [], at: utf8("a")))
    }
}
