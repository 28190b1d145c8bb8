extension UInt64 {
    /// 8 bytes: PostgreSQL's binary form of a bigint, too.
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { [UInt8]($0) } }
}
