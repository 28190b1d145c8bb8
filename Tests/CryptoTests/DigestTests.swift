import Base
import Testing

@testable import Crypto

@Suite struct DigestTests {
    @Test func digestsAreThoseOfFIPS180() {
        #expect(
            Digest.sha256([]) == hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
        #expect(
            Digest.sha256(utf8("abc")) == hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"))
        #expect(
            Digest.sha256([UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000))
                == hex("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"))
    }

    @Test func everyThreadDigestsForItself() {
        let expected = (0..<64).map { Digest.sha256([UInt8](repeating: UInt8($0), count: $0 * 17)) }
        let mismatches = Counter()
        let threads = (0..<4).map { _ in
            OSThread(name: "digest") {
                for round in 0..<2_000 {
                    let index = round % 64
                    let digest = Digest.sha256([UInt8](repeating: UInt8(index), count: index * 17))
                    if digest != expected[index] { mismatches.add() }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(mismatches.value == 0)
    }

    @Test func theSystemsRandomBytesDiffer() {
        #expect(RandomSource.system.bytes(32) != RandomSource.system.bytes(32))
        #expect(RandomSource.system.bytes(0).isEmpty)
    }
}
