import Base

/// SplitMix64: the same numbers for the same seed.
struct SeededRandom {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// Prints its seed, so that a failure can be repeated.
    static func printed(_ test: String = #function) -> SeededRandom {
        let seed = UInt64.random(in: 0 ... .max)
        print("\(test): seed \(seed)")
        return SeededRandom(seed: seed)
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }

    /// One to four bytes changed, removed, inserted, or the end cut off.
    mutating func mutated(_ bytes: [UInt8], alphabet: [UInt8] = Array(0...255)) -> [UInt8] {
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

func hex(_ digits: String) -> [UInt8] { Hex.decode(digits.utf8.filter { $0 != 0x20 && $0 != 0x0A })! }
func base64(_ text: String) -> [UInt8] { Base64.standard.decode([UInt8](text.utf8))! }
func base64url(_ text: String) -> [UInt8] { Base64.url.decode([UInt8](text.utf8))! }
func utf8(_ text: String) -> [UInt8] { [UInt8](text.utf8) }

extension Secret {
    var bytes: [UInt8] { withBytes { [UInt8]($0) } }
}
