import Base
import Synchronization

/// The newest position in a cluster's journal that a channel's servers reported. The channel's calls carry it, so that
/// any server that answers has seen the channel's writes. Servers outside of a cluster report none. Any thread.
final class JournalMemory: Sendable {
    private let told = Mutex(Text.empty)
    /// The id of the cluster and the point behind it: 32 hexadecimal digits and one byte.
    private static let prefixByteCount = 33
    /// As above, and the digits of a UInt64.
    private static let byteCountMax = 53

    /// The position. Empty: no server has reported one.
    var position: Text { told.withLock { $0 } }

    /// Keeps a position, unless it is before the known one. A position of another cluster replaces the known one.
    func note(_ text: UnsafeRawBufferPointer) {
        guard (Self.prefixByteCount + 1...Self.byteCountMax).contains(text.count), let new = Text(validating: text)
        else { return }
        told.withLock { known in
            if Self.isBefore(new.bytes, known.bytes) { return }
            known = new
        }
    }

    /// A server refused the position: the cluster is another one, or was created anew.
    func forget() { told.withLock { $0 = .empty } }

    /// Whether both are of one cluster, and `one` has the smaller number. Numbers have no zeros in front.
    private static func isBefore(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        guard other.starts(with: one.prefix(prefixByteCount)) else { return false }
        if one.count != other.count { return one.count < other.count }
        return one.lexicographicallyPrecedes(other)
    }
}
