// Numbers in the store's keys and records: the highest byte first, so that bytes sort as their numbers do.

extension [UInt8] {
    /// `bigEndianNumber` reads it again.
    mutating func append<Number: FixedWidthInteger>(bigEndian value: Number) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}
