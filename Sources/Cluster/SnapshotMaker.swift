import Base
import Crypto
import Journal
import Store

/// Makes a snapshot: a hot copy of the store, sealed part by part into the engine. It takes the memory of a few parts,
/// and a connection of its own. All records are read first: a store with a damaged record makes no snapshot.
///
/// While LMDB copies, the store may go on. So the copy is of a moment between two known marks. It is sealed under the
/// earlier mark, below which it needs no entry. It becomes complete only if the journal holds the later mark, so that a
/// store that forked makes no snapshot.
struct SnapshotMaker {
    let address: JournalAddress
    let seal: JournalSeal
    let random: RandomSource
    let limits: Limits

    /// How often the reading of the records looks whether it goes on, and tells the engine that it does.
    private static let lookEvery = Duration.seconds(1)

    /// Nil if another node is making one, or if `goesOn` returned false.
    @available(*, noasync, message: "blocks the thread")
    func make(of store: Store, while goesOn: () -> Bool) throws -> MadeSnapshot? {
        let connection = try address.connect(to: seal, timeout: limits.journal.answerTimeout)
        let commits = try connection.execute("SELECT current_setting('synchronous_commit', true)").text(0, 0) ?? "on"
        // Parts are safe when the row that completes them is safe: it is committed by itself after all of them.
        try connection.execute("SET synchronous_commit = off")
        let tables = SnapshotTables(ClusterTables(connection, address), limits.journal)
        let before = try place(of: store)
        let id = random.bytes(SnapshotSeal.idByteCount)
        switch try tables.claim(id, at: before) {
        case .claimed: break
        case .taken: return nil
        case .notInJournal: throw SnapshotProblem.forked(position: before.position)
        }
        do {
            let isWanted = try verify(store, id, tables, while: goesOn)
            let sealed = seal.snapshot(id, at: before)
            guard isWanted, let (byteCount, partCount, after) = try copy(store, sealed, id, into: tables, while: goesOn)
            else {
                try tables.give(up: id)
                return nil
            }
            try connection.execute(
                "SELECT set_config('synchronous_commit', $1::text, false)", parameters: [[UInt8](commits.utf8)])
            guard try tables.complete(id, parts: partCount, bytes: byteCount, before: after) else {
                throw SnapshotProblem.replaced
            }
            return MadeSnapshot(position: before.position, byteCount: byteCount, partCount: partCount)
        } catch {
            // If the engine is away, the node that finds the snapshot abandoned gives it up.
            try? tables.give(up: id)
            throw error
        }
    }

    /// Reads all records before they are copied: the newest snapshot is the only one, so that a damaged record in it
    /// would reach each node that joins. A sound node makes the snapshot when this one gives up its claim.
    ///
    /// Returns false if `goesOn` did.
    private func verify(
        _ store: Store, _ id: [UInt8], _ tables: SnapshotTables, while goesOn: () -> Bool
    ) throws -> Bool {
        let room = store.watchRoom()
        var lookedAt = Instant.now
        var problem: (any Error)?
        do {
            // Only the reading counts here; nothing needs the digests.
            _ = try store.digest {
                guard Instant.now >= lookedAt.advanced(by: Self.lookEvery) else { return true }
                lookedAt = .now
                do {
                    guard !room.hasRunOut else { throw SnapshotProblem.noRoom }
                    guard try tables.touch(id) else { throw SnapshotProblem.replaced }
                    return goesOn()
                } catch {
                    problem = error
                    return false
                }
            }
        } catch is CancellationError {
            if let problem { throw problem }
            return false
        } catch let error as StoreError where error.isDamage {
            throw SnapshotProblem.damagedHere(error)
        }
        return true
    }

    private func copy(
        _ store: Store, _ seal: SnapshotSeal, _ id: [UInt8], into tables: SnapshotTables, while goesOn: () -> Bool
    ) throws -> (byteCount: UInt64, partCount: UInt64, after: JournalMark)? {
        let room = store.watchRoom()
        let copy = try store.beginCopy()
        var (byteCount, part): (UInt64, UInt64) = (0, 0)
        var after: JournalMark?
        while goesOn() {
            // The copy keeps the pages of all that is deleted meanwhile, so that deleting makes no room before its end.
            guard !room.hasRunOut else { throw SnapshotProblem.noRoom }
            let bytes = try piece(of: copy)
            // LMDB took its snapshot before it wrote anything.
            let mark = try after ?? place(of: store)
            after = mark
            let isLast = bytes.count < limits.journal.snapshotPartByteCount
            let sealed = try seal.seal(bytes, part: part, isLast: isLast)
            guard try tables.add(sealed, part: part, isLast: isLast, to: id) else { throw SnapshotProblem.replaced }
            byteCount += UInt64(bytes.count)
            part += 1
            if isLast { return (byteCount, part, mark) }
        }
        return nil
    }

    /// The next piece, which is shorter than a part only at the end.
    private func piece(of copy: StoreCopy) throws(StoreError) -> [UInt8] {
        var failure: StoreError?
        let piece = [UInt8](unsafeUninitializedCapacity: limits.journal.snapshotPartByteCount) { buffer, count in
            do throws(StoreError) {
                count = try copy.read(into: UnsafeMutableRawBufferPointer(buffer))
            } catch let error {
                failure = error
            }
        }
        if let failure { throw failure }
        return piece
    }

    private func place(of store: Store) throws -> JournalMark {
        guard let place = try store.journalPlace(), place.clusterID == seal.clusterID else {
            throw StoreError.journal(.notJoined)
        }
        return place.mark
    }
}
