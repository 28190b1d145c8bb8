public import Base
import Messages
import Store
import Synchronization

/// Decides which node of a cluster does the work that one node does for all. Any thread.
///
/// A lease is a row that names its holder, and the holder counts it up as long as it does the work. Another node takes
/// the lease when it has seen the row unchanged for `JournalLimits.leaseDuration` by its own steady clock: the clocks
/// of two nodes are never compared, and setting a clock has no effect. A holder that was stopped for longer finds
/// another node's name in the row when it asks again. Until then both may do the work, so the work is safe on several
/// nodes at once.
///
/// A node that cannot read the row, because its own copy is damaged, does not know the holder, and takes the lease in
/// the same way. If there is a holder, its next renewal writes the row anew in every store.
///
/// Outside of a cluster every lease is held and nothing is written.
public final class Leases: Sendable {
    public enum Work: String, CaseIterable, Sendable {
        /// The deletion of rows by their age, and the purges of deleted tenants.
        case sweep
    }

    /// Work that was left to another node.
    public let leftCount = Counter()
    private let resources: Resources
    /// A new value at each start: a server that was killed waits for its own lease like any other node.
    private let holder: [UInt8]
    private let seen = Mutex<[Work: Seen]>([:])
    /// True from `giveBack` on.
    private let isGivenBack = Atomic(false)

    private struct Seen {
        let row: LeaseRow
        let since: Timestamp
    }

    init(_ resources: Resources) {
        self.resources = resources
        self.holder = resources.random.bytes(16)
    }

    /// Whether this node does the work now. Asked each time before the work, at least once in a third of the lease's
    /// duration.
    func hold(_ work: Work) async throws -> Bool {
        guard resources.store.isInCluster else { return true }
        let row = try stored(work)
        if row == .damaged { resources.damagedRecords.passOver(rowOf: Tables.leases.name.description) }
        let isMine = row == .free || row.isHeld(by: holder)
        let abandoned = isMine ? nil : abandonedRow(row, work)
        if isMine || abandoned != nil {
            let (holder, now) = (holder, resources.clock.now())
            let isTaken = try await resources.store.write(for: .removal) { [self] in
                // Asked where changes are in order: a lease that was taken before is given back after this.
                guard !isGivenBack.load(ordering: .acquiring) else { return false }
                return try $0.takeLease(work, holder, from: abandoned, now: now)
            }
            if isTaken { return true }
            // The write read the journal to its end: the other node's row is here now, and is watched from now on.
            _ = abandonedRow(try stored(work), work)
        }
        leftCount.add()
        return false
    }

    private func stored(_ work: Work) throws -> LeaseRow { try resources.store.read { try $0.lease(work) } }

    /// Another node's row, if it has been the same for the lease's duration.
    private func abandonedRow(_ row: LeaseRow, _ work: Work) -> LeaseRow? {
        guard row != .free else { return nil }
        let now = resources.steadyClock.now()
        let since = seen.withLock { seen in
            if let known = seen[work], known.row == row { return known.since }
            seen[work] = Seen(row: row, since: now)
            return now
        }
        return now - since >= resources.limits.journal.leaseDuration ? row : nil
    }

    /// Gives up the leases when the server stops, so that other nodes go on at once. Work that still asks holds none
    /// from then on.
    public func giveBack() async {
        guard resources.store.isInCluster else { return }
        isGivenBack.store(true, ordering: .releasing)
        for work in Work.allCases {
            // If the engine cannot be reached, the other nodes wait for the lease to end.
            _ = try? await resources.store.write(for: .removal) { [holder] in
                guard try $0.reading.lease(work).isHeld(by: holder) else { return }
                try $0.delete(Tables.leases, TextKey(Text(work.rawValue)))
            }
        }
    }
}

/// A lease's row as this node's store has it.
private enum LeaseRow: Equatable, Sendable {
    case free
    case held(by: [UInt8], renewals: UInt64)
    case damaged

    func isHeld(by holder: [UInt8]) -> Bool {
        if case .held(let other, _) = self { other == holder } else { false }
    }
}

extension ReadTransaction {
    fileprivate func lease(_ work: Leases.Work) throws -> LeaseRow {
        do throws(StoreError) {
            guard let row = try get(Tables.leases, TextKey(Text(work.rawValue))) else { return .free }
            return .held(by: row.holder, renewals: row.renewals)
        } catch {
            guard case .corrupt = error else { throw error }
            return .damaged
        }
    }
}

extension WriteTransaction {
    /// Takes a lease that nobody holds or that was `abandoned`, or renews it. False: another node has it.
    fileprivate func takeLease(
        _ work: Leases.Work, _ holder: [UInt8], from abandoned: LeaseRow?, now: Timestamp
    ) throws -> Bool {
        let row = try reading.lease(work)
        guard row == .free || row == abandoned || row.isHeld(by: holder) else { return false }
        var lease = StoredLease(holder: holder, renewedAtMicros: now.microseconds)
        if case .held(_, let renewals) = row { lease.renewals = renewals &+ 1 }
        try put(Tables.leases, TextKey(Text(work.rawValue)), lease)
        return true
    }
}
