// Bytes for tests: frames and envelopes put together by hand, and a generator of seeded random ones.

import Base
import Wire

/// splitmix64 (Steele, Lea, Flood 2014).
struct SeededGenerator: RandomNumberGenerator {
    let seed: UInt64
    private var state: UInt64

    /// A fresh seed, unless the environment's POSTERN_TEST_SEED gives one.
    init(seed: UInt64? = nil) {
        self.seed = seed ?? UInt64.random(in: 0...UInt64.max)
        self.state = self.seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

func frame(_ type: UInt8, stream: UInt32, flags: UInt8 = 0, _ payload: [UInt8] = [], length: UInt32? = nil) -> [UInt8] {
    bigEndian(length ?? UInt32(payload.count)) + bigEndian(stream) + [type, flags] + payload
}

func bigEndian(_ value: UInt32) -> [UInt8] {
    [UInt8(value >> 24), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
}

func varint(_ value: UInt64) -> [UInt8] {
    value < 128 ? [UInt8(value)] : [UInt8(value & 127) | 128] + varint(value >> 7)
}

func field(_ number: UInt64, _ bytes: [UInt8]) -> [UInt8] {
    varint(number << 3 | 2) + varint(UInt64(bytes.count)) + bytes
}

func field(_ number: UInt64, _ string: String) -> [UInt8] { field(number, [UInt8](string.utf8)) }

func field(_ number: UInt64, _ value: UInt64) -> [UInt8] { varint(number << 3) + varint(value) }

func entry(_ key: String, _ value: String) -> [UInt8] { field(5, field(1, key) + field(2, value)) }

extension ByteBuffer {
    init(_ bytes: [UInt8]) {
        self.init()
        append(contentsOf: bytes)
    }
}

func bytes(of buffer: (inout ByteBuffer) -> Void) -> [UInt8] {
    var output = ByteBuffer()
    buffer(&output)
    return output.copyBytes()
}

extension UnsafeRawBufferPointer {
    var string: String { String(decoding: self, as: UTF8.self) }
}
