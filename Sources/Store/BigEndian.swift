// Numbers in the store's keys and records: the highest byte first, so that bytes sort as their numbers do.

extension FixedWidthInteger where Self: UnsignedInteger {
    /// The number that `bytes` hold. There are at most as many bytes as the type has.
    @inline(__always)
    init(bigEndianBytes bytes: some Sequence<UInt8>) { self = bytes.reduce(0) { $0 << 8 | Self($1) } }
}

extension [UInt8] {
    mutating func append<Number: FixedWidthInteger>(bigEndian value: Number) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}
