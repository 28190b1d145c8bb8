internal import Base
internal import CLMDB
import Glibc
import Synchronization

/// The data file as it is at one moment, read as a stream of bytes while the server goes on. Pages that are free are
/// left out (MDB_CP_COMPACT).
///
/// LMDB writes the copy into a pipe, on a thread of its own, from a snapshot. As long as the copy lasts, the snapshot
/// keeps the pages of everything deleted since, so the reader must not pause. One reader at a time.
public final class StoreCopy: Sendable {
    private let readEnd: Int32
    private let outcome: Outcome

    /// The result of the copy. The copying thread sets it before it closes its end of the pipe.
    private final class Outcome: Sendable {
        let error = Mutex<StoreError?>(nil)
    }

    init(of environment: Environment) throws(StoreError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw StoreError(code: errno, operation: "pipe") }
        let (readEnd, writeEnd) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let outcome = Outcome()
        (self.readEnd, self.outcome) = (readEnd, outcome)
        do throws(ThreadError) {
            try OSThread.startDetached(name: "backup") {
                outcome.error.withLock { $0 = Self.copy(environment, into: writeEnd) }
                close(writeEnd)
            }
        } catch {
            close(writeEnd)
            throw StoreError(code: error.code, operation: "start a thread for the copy")
        }
    }

    /// Returns the error that ended the copy, if any.
    private static func copy(_ environment: Environment, into writeEnd: Int32) -> StoreError? {
        do throws(StoreError) {
            try environment.whileOpen { raw throws(StoreError) in
                try StoreError.check(
                    mdb_env_copyfd2(raw, writeEnd, UInt32(MDB_CP_COMPACT)), "mdb_env_copyfd2")
            }
            return nil
        } catch {
            return error
        }
    }

    /// A copy that is not read to its end is given up, because LMDB finds its pipe closed.
    deinit { close(readEnd) }

    /// Fills the buffer; it gets fewer bytes only at the end of the copy. Throws if the copy failed.
    @available(*, noasync, message: "blocks the thread")
    public func read(into buffer: UnsafeMutableRawBufferPointer) throws(StoreError) -> Int {
        var filled = 0
        while filled < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
            let count = Glibc.read(readEnd, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw StoreError(code: errno, operation: "read the copy") }
            if count == 0 { break }
            filled += count
        }
        if filled < buffer.count, let error = outcome.error.withLock({ $0 }) { throw error }
        return filled
    }
}

extension Store {
    /// Begins a copy of the store as it is now, or a moment later. It holds a snapshot until it is dropped.
    public func beginCopy() throws(StoreError) -> StoreCopy { try StoreCopy(of: environment) }
}
