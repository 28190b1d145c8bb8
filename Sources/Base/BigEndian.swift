extension Sequence where Element == UInt8 {
    /// The number that the bytes are, the most significant byte first. Of more than eight bytes, the last eight count.
    ///
    ///     [1, 2].bigEndianNumber == 0x0102
    @inlinable public var bigEndianNumber: UInt64 { reduce(0) { $0 << 8 | UInt64($1) } }
}
