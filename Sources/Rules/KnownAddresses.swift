import Base

/// The addresses that a user signed in from, as hashes: the latest last, at most 16.
///
/// They are kept in the user's record, which a sign-in writes anyway, and are deleted with it.
public struct KnownAddresses: Sendable, Equatable {
    public static let countMax = 16

    /// Eight bytes each, as stored.
    public private(set) var bytes: [UInt8]

    public init() { self.bytes = [] }

    /// Reads stored addresses. Incomplete entries are left out, and of more than 16 the oldest.
    public init(stored bytes: [UInt8]) {
        let whole = bytes.count - bytes.count % 8
        self.bytes = Array(bytes[..<whole].suffix(Self.countMax * 8))
    }

    public var all: [UInt64] {
        stride(from: 0, to: bytes.count, by: 8).map { start in
            bytes[start..<start + 8].bigEndianNumber
        }
    }

    public func contains(_ address: UInt64) -> Bool { index(of: address) != nil }

    /// Makes the address the latest. Nothing changes when it is the latest already: most sign-ins come from the same
    /// address as the last one.
    public mutating func remember(_ address: UInt64) {
        if let index = index(of: address) {
            if index + 8 == bytes.count { return }
            bytes.removeSubrange(index..<index + 8)
        }
        withUnsafeBytes(of: address.bigEndian) { bytes += $0 }
        if bytes.count > Self.countMax * 8 { bytes.removeFirst(8) }
    }

    private func index(of address: UInt64) -> Int? {
        stride(from: 0, to: bytes.count, by: 8).first { start in
            bytes[start..<start + 8].bigEndianNumber == address
        }
    }
}
