import Base
import Synchronization

/// For each hash, the newest snapshot in which something with that hash changed. A value that was made from it and is
/// kept elsewhere can then be checked. `RowMarks` are the marks of rows.
///
/// A few names share a mark. If one of them changes, the values of the others are made again, which costs time only.
/// Any thread may ask; the writer's thread moves the marks.
public final class ChangeMarks: Sendable {
    private let mask: Int
    // Proof: set once, freed by deinit alone, and what it points to is atomic.
    nonisolated(unsafe) private let changedAt: UnsafeMutablePointer<Atomic<UInt64>>

    /// `count`: a power of two; each takes 8 bytes.
    public init(count: Int) {
        // Proof: a constant of the code.
        precondition(count > 0 && count & (count - 1) == 0, "the number of marks is no power of two")
        mask = count - 1
        changedAt = .allocate(capacity: count)
        for index in 0..<count { (changedAt + index).initialize(to: Atomic(0)) }
    }

    deinit {
        changedAt.deinitialize(count: mask + 1)
        changedAt.deallocate()
    }

    public func move(_ hash: Int, to snapshot: Snapshot) {
        changedAt[hash & mask].store(snapshot.transactionID, ordering: .releasing)
    }

    /// False if something with this mark changed after that moment, at which a value was made.
    public func isUnchanged(_ hash: Int, since snapshot: Snapshot) -> Bool {
        changedAt[hash & mask].load(ordering: .acquiring) <= snapshot.transactionID
    }
}
