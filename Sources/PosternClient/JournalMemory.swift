import Base
import Synchronization

/// The place in a cluster's journal that a channel's servers told of: its calls bring it along, so that whichever
/// server answers has seen what the channel wrote. Servers outside of a cluster tell none. Any thread.
final class JournalMemory: Sendable {
    private let told = Mutex(Text.empty)
    /// The id of the cluster and the point behind it: 32 hexadecimal digits and one byte.
    private static let prefixByteCount = 33
    /// As above, and the digits of a UInt64.
    private static let byteCountMax = 53

    /// Empty: nothing was told.
    var position: Text { told.withLock { $0 } }

    /// Takes over a position, unless it is before the one that is known. Another cluster's takes its place.
    func note(_ text: UnsafeRawBufferPointer) {
        guard (Self.prefixByteCount + 1...Self.byteCountMax).contains(text.count), let new = Text(validating: text)
        else { return }
        told.withLock { known in
            if Self.isBefore(new.bytes, known.bytes) { return }
            known = new
        }
    }

    /// A server refused it: the cluster is another one, or was begun anew.
    func forget() { told.withLock { $0 = .empty } }

    /// Whether both are of one cluster, and `one` has the smaller number. Numbers have no zeros in front.
    private static func isBefore(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        guard other.starts(with: one.prefix(prefixByteCount)) else { return false }
        if one.count != other.count { return one.count < other.count }
        return one.lexicographicallyPrecedes(other)
    }
}
