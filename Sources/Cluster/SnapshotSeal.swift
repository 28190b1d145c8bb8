import Base
import Crypto
public import Store

/// Seals the parts of a snapshot, so that the engine's operators can neither read nor replace them.
///
/// A part is sealed with AES-256-GCM. Its authenticated context is the cluster, the snapshot, its place in the journal,
/// the part's number, and whether it is the last: a part that was altered, moved or taken from another snapshot does
/// not open, and a snapshot that was cut has no last part. Each snapshot has a key of its own.
struct SnapshotSeal: Sendable {
    static let idByteCount = 16
    /// Above any part that a node makes.
    static let byteCountMax = 16 << 20

    private let key: SealingKey
    private let context: [UInt8]
    private let random: RandomSource

    init(key: SealingKey, context: [UInt8], _ random: RandomSource) {
        (self.key, self.context, self.random) = (key, context, random)
    }

    func seal(_ bytes: [UInt8], part: UInt64, isLast: Bool) throws(CryptoError) -> [UInt8] {
        let plain = bytes.span.withUnsafeBytes { Secret(copying: $0) }
        return try key.seal(plain, context: context(of: part, isLast), random: random)
    }

    func open(
        _ body: UnsafeRawBufferPointer, part: UInt64, isLast: Bool
    ) throws(SnapshotProblem) -> [UInt8] {
        do throws(CryptoError) {
            return try key.open(body, context: context(of: part, isLast)).withBytes { [UInt8]($0) }
        } catch {
            throw .altered(part: part)
        }
    }

    private func context(of part: UInt64, _ isLast: Bool) -> [UInt8] {
        context + part.bigEndianBytes + [isLast ? 1 : 0]
    }
}

/// The reason why a snapshot cannot be made or used.
public enum SnapshotProblem: Error, Equatable, Sendable {
    /// The cluster has no complete snapshot.
    case none
    /// This part is missing, or the parts after it: the snapshot was cut.
    case missing(part: UInt64)
    /// This part was altered, moved, or belongs to another snapshot.
    case altered(part: UInt64)
    /// The snapshot's row in the engine and its contents contradict each other.
    case otherStore
    /// Entries that a node needs after the snapshot are not in the journal.
    case behindJournal(position: UInt64)
    /// A newer snapshot took its place while it was read, or another node took its claim while it was made.
    case replaced
    /// The store holds entries that the journal does not hold.
    case forked(position: UInt64)
    /// The store ran out of room while its copy was made.
    case noRoom
    /// The snapshot holds what its maker's store held, and that was damaged.
    case damaged
    /// The store that the snapshot would be made of is damaged.
    case damagedHere(StoreError)
}

extension SnapshotProblem: CustomStringConvertible {
    public var description: String {
        switch self {
        case .none:
            "the cluster has no snapshot yet: its nodes make one within a minute of their start"
        case .missing(let part): "the newest snapshot is cut: its part \(part) is missing\(Self.remedy)"
        case .altered(let part):
            "part \(part) of the newest snapshot is not what its author wrote in this place\(Self.remedy)"
        case .otherStore: "the newest snapshot is not of the store that its row says\(Self.remedy)"
        case .behindJournal(let position):
            "the newest snapshot ends at entry \(position), and the journal begins behind it\(Self.remedy)"
        case .replaced: "the snapshot was replaced by another one meanwhile"
        case .forked(let position): "the store holds entry \(position), and the journal does not hold the same one"
        case .noRoom: "the store has run out of room, and what is deleted makes none until the snapshot ends"
        case .damaged:
            "the newest snapshot has damaged records: the store of the node that made it is damaged. Call postern "
                + "cluster snapshot on another node, whose store is sound, and try again"
        case .damagedHere(let error): "this node's store is damaged, so another node has to make it: \(error)"
        }
    }

    private static let remedy = ". Delete its row in postern_snapshot: a node makes another one within a minute"
}
