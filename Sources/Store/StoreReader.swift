import Base
internal import CLMDB
import Glibc
import Synchronization

/// One thread's read transaction, renewed for each read: no allocation, no mutex, no system call per read.
///
/// `Store.read` finds the calling thread's own; a loop may keep the result of `Store.reader()` to save the look-up.
/// Nested reads see the outermost read's snapshot. If two threads use a reader at the same time, it traps.
public final class StoreReader: @unchecked Sendable {
    // Unchecked: `state` lets one thread at a time touch the other variables, which happens between its exchange to
    // `reading` (acquiring) and its store of `idle` (releasing). `owner` is only compared with the caller's own id.
    private enum State {
        static let idle: UInt8 = 0
        static let reading: UInt8 = 1
        static let retiring: UInt8 = 2
        static let retired: UInt8 = 3
    }

    let environment: Environment
    private let state = Atomic<UInt8>(State.idle)
    private let owner = Atomic<UInt>(0)
    private let longValues = LongValues()
    // Proof: `state` keeps other threads away, and LMDB does not know this object.
    @exclusivity(unchecked) private var raw: OpaquePointer?
    /// How many calls of `beginSharing` wait for their `endSharing`.
    private var sharingDepth = 0

    init(environment: Environment) throws(StoreError) {
        self.environment = environment
        try environment.uses.add(self) { [self] in retire() }
    }

    /// Runs `body` over a snapshot of everything committed so far. `body` must not block for long: a snapshot keeps
    /// the pages of everything deleted since.
    public func read<Result>(_ body: (borrowing ReadTransaction) throws -> Result) throws -> Result {
        let isNested = try begin()
        defer { if !isNested, sharingDepth == 0 { end() } }
        guard let raw else { preconditionFailure("a read has no transaction") }
        return try body(ReadTransaction(raw: raw, environment: environment, longValues: longValues))
    }

    /// Lets all reads until `endSharing` see one snapshot, which the first of them begins. So many short reads begin
    /// only one transaction.
    ///
    /// A read does not see what was committed after the first one. So share only for reads that may be answered as of
    /// the same moment, and for a short time.
    public func beginSharing() { sharingDepth += 1 }

    /// Ends what `beginSharing` began. Call it on the same thread, outside of a read.
    public func endSharing() {
        sharingDepth -= 1
        if sharingDepth == 0, state.load(ordering: .relaxed) == State.reading { end() }
    }

    /// Lets the next read see everything committed so far, and share that snapshot with the reads after it. Without a
    /// shared snapshot there is nothing to do. Call it on the same thread, outside of a read.
    public func readAnew() {
        guard state.load(ordering: .relaxed) == State.reading else { return }
        // Proof: whether code runs inside of a read is a matter of the code, not of data.
        precondition(sharingDepth > 0, "a snapshot is renewed inside of the read that uses it")
        end()
    }

    /// True if this thread is in a read of this reader already, or shares an earlier one's snapshot.
    private func begin() throws(StoreError) -> Bool {
        let thread = UInt(pthread_self())
        // Only the owner itself can find its own id here.
        if owner.load(ordering: .relaxed) == thread { return true }
        let (exchanged, found) = state.compareExchange(
            expected: State.idle, desired: State.reading, ordering: .acquiring)
        guard exchanged else {
            if found >= State.retiring { throw .closed }
            // Proof: which thread has which reader is a matter of the code, not of data.
            preconditionFailure("a StoreReader is used by two threads at once")
        }
        do throws(StoreError) {
            if let raw {
                try StoreError.check(mdb_txn_renew(raw), "mdb_txn_renew")
            } else {
                try StoreError.check(
                    mdb_txn_begin(environment.raw, nil, UInt32(MDB_RDONLY), &raw), "mdb_txn_begin")
            }
        } catch {
            state.store(State.idle, ordering: .releasing)
            if case .fatal = error { environment.uses.report(error) }
            throw error
        }
        owner.store(thread, ordering: .relaxed)
        return false
    }

    private func end() {
        longValues.removeAll()
        mdb_txn_reset(raw)
        owner.store(0, ordering: .relaxed)
        state.store(State.idle, ordering: .releasing)
    }

    var isRetired: Bool { state.load(ordering: .relaxed) == State.retired }

    /// Ends the transaction for good; waits for a read on another thread. Every later read throws `.closed`.
    func retire() {
        while true {
            let (exchanged, found) = state.compareExchange(
                expected: State.idle, desired: State.retiring, ordering: .acquiring)
            if exchanged { break }
            if found == State.retired { return }
            precondition(owner.load(ordering: .relaxed) != UInt(pthread_self()), "the store is closed inside of a read")
            usleep(100)
        }
        if let raw { mdb_txn_abort(raw) }
        raw = nil
        state.store(State.retired, ordering: .releasing)
    }
}

/// The calling thread's readers, one per open store; retired when the thread ends.
final class ThreadReaders {
    private var readers: [StoreReader] = []

    private static let kept = ThreadPointer { pointer in
        guard let pointer else { return }
        Unmanaged<ThreadReaders>.fromOpaque(pointer).takeRetainedValue().retireAll()
    }

    static func reader(for environment: Environment) throws(StoreError) -> StoreReader {
        let readers: ThreadReaders
        if let pointer = kept.value {
            readers = Unmanaged<ThreadReaders>.fromOpaque(pointer).takeUnretainedValue()
        } else {
            readers = ThreadReaders()
            kept.value = Unmanaged.passRetained(readers).toOpaque()
        }
        for reader in readers.readers where reader.environment === environment { return reader }
        readers.readers.removeAll { $0.isRetired }
        let reader = try StoreReader(environment: environment)
        readers.readers.append(reader)
        return reader
    }

    private func retireAll() {
        for reader in readers {
            reader.retire()
            reader.environment.uses.remove(reader)
        }
    }
}
