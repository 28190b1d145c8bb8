/// xorshift64* (Vigna 2016): the same seed makes the same requests, at a nanosecond each. Not for secrets.
struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) {
        // Neighbouring seeds must not begin alike, and zero would stay zero: one step of splitmix64 (Steele 2014).
        var mixed = seed &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        state = max(1, mixed ^ mixed >> 31)
    }

    mutating func next() -> UInt64 {
        state ^= state >> 12
        state ^= state << 25
        state ^= state >> 27
        return state &* 0x2545_F491_4F6C_DD1D
    }

    /// 0..<bound. The bias is bound / 2^32: too small to see here.
    mutating func below(_ bound: Int) -> Int {
        Int(((next() >> 32) &* UInt64(bound)) >> 32)
    }
}

extension SeededGenerator {
    /// A number evenly distributed from 0 up to, and without, 1.
    mutating func unit() -> Double { Double(next() >> 11) / 9_007_199_254_740_992 }
}
