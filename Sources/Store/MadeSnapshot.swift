/// A snapshot of a cluster that was made.
public struct MadeSnapshot: Sendable {
    /// The store in the snapshot is at this entry, or after it.
    public let position: UInt64
    public let byteCount: UInt64
    public let partCount: UInt64

    public init(position: UInt64, byteCount: UInt64, partCount: UInt64) {
        (self.position, self.byteCount, self.partCount) = (position, byteCount, partCount)
    }
}
