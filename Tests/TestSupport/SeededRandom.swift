public import Base
import Synchronization

/// SplitMix64: the same numbers for the same seed.
public struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    /// Prints its seed, so that a failure can be repeated.
    public static func printed(_ test: String = #function) -> SeededRandom {
        let seed = UInt64.random(in: 0 ... .max)
        print("\(test): seed \(seed)")
        return SeededRandom(seed: seed)
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    public mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    public mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }

    /// The same numbers as a source of random bytes, which code under test asks for.
    public static func source(seed: UInt64) -> RandomSource {
        let state = Mutex(SeededRandom(seed: seed))
        return RandomSource { buffer in
            state.withLock { state in
                for index in buffer.indices { buffer[index] = UInt8(truncatingIfNeeded: state.next()) }
            }
        }
    }

    /// The bytes with one to four changes: a byte changed, removed or inserted, or the end cut off.
    public mutating func mutated(_ bytes: [UInt8], alphabet: [UInt8] = Array(0...255)) -> [UInt8] {
        var copy = bytes
        for _ in 0...below(4) where !copy.isEmpty {
            let index = below(copy.count)
            switch below(8) {
            case 0: copy.remove(at: index)
            case 1: copy.insert(alphabet[below(alphabet.count)], at: index)
            case 2: copy.removeSubrange(index...)
            case 3: copy[index] ^= 1 << UInt8(below(8))
            default: copy[index] = alphabet[below(alphabet.count)]
            }
        }
        return copy
    }
}
