import Base
import Synchronization
import Testing

@Suite struct RandomSourceTests {
    /// 0, 1, …, 255, 0, 1, …
    private func counting() -> RandomSource {
        let next = Mutex<UInt8>(0)
        return RandomSource { buffer in
            next.withLock { next in
                for index in buffer.indices {
                    buffer[index] = next
                    next &+= 1
                }
            }
        }
    }

    @Test func bytesAreTheSources() {
        #expect(counting().bytes(3) == [0, 1, 2])
        #expect(counting().bytes(0) == [])
    }

    @Test(arguments: [false, true]) func everyCharacterComesFromEquallyManyBytes(lowercase: Bool) {
        let characterCount = lowercase ? 36 : 62
        let perCharacter = 256 / characterCount
        // One round through all byte values: those beyond the largest multiple are passed over.
        let text = counting().alphanumeric(characterCount * perCharacter, lowercase: lowercase)
        let counts = Dictionary(grouping: text.bytes, by: { $0 }).mapValues(\.count)
        #expect(counts.count == characterCount)
        #expect(counts.values.allSatisfy { $0 == perCharacter })
        let isAllowed = text.bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): !lowercase
            default: false
            }
        }
        #expect(isAllowed)
    }

    @Test func theLengthIsTheOneAskedFor() {
        for count in [0, 1, 12, 28, 300] { #expect(counting().alphanumeric(count).byteCount == count) }
    }

    @Test func bytesThatFitNoCharacterAreReplaced() {
        let calls = Mutex(0)
        let source = RandomSource { buffer in
            let isFirst = calls.withLock { calls in
                calls += 1
                return calls == 1
            }
            for index in buffer.indices { buffer[index] = isFirst ? 255 : 1 }
        }
        #expect(source.alphanumeric(4) == "BBBB")
    }
}
