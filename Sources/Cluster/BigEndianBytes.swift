extension UInt64 {
    /// 8 bytes, which are also PostgreSQL's binary form of a bigint.
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { [UInt8]($0) } }
}
