import Base
import Identity
import Synchronization

/// Takes a backup at regular intervals, on a thread of its own, from a server's start to its stop.
///
/// The first backup is due when the newest one in the directory is old enough, so that a server that restarts often
/// does not fill the directory with backups of one hour. After a failure, the next try comes within five minutes.
final class BackupSchedule: Sendable {
    private let backups: Backups
    private let directory: BackupDirectory
    private let log: Log
    private let isStopping = Atomic(false)
    private let wakeup = Semaphore()
    private let thread = Mutex<OSThread?>(nil)

    private static let retryAfter = Duration.minutes(5)

    init(_ backups: Backups, to directory: BackupDirectory, log: Log) {
        self.backups = backups
        self.directory = directory
        self.log = log
        thread.withLock { $0 = OSThread(name: "backups") { [self] in run() } }
    }

    /// Aborts a backup that is being taken, and waits for the thread.
    func stop() {
        isStopping.store(true, ordering: .releasing)
        wakeup.signal()
        thread.withLock { $0.take() }?.join()
    }

    private func run() {
        let period = directory.period
        let age = try? directory.newestAge(of: backups)
        if let age { backups.noteEarlier(age: age) }
        var wait = max(.zero, period - (age ?? period))
        while !isStopping.load(ordering: .acquiring) {
            if wait > .zero, wakeup.wait(for: wait) { continue }
            do {
                try take()
                wait = period
            } catch is CancellationError {
                return
            } catch {
                log.error(
                    "no backup could be taken", ["directory": .text(directory.path), "error": .text("\(error)")])
                wait = min(period, Self.retryAfter)
            }
        }
    }

    /// The backup that was taken is a success, whether older ones could be deleted or not.
    private func removeOld() {
        do {
            try directory.removeOld(of: backups)
        } catch {
            log.error(
                "old backups could not be deleted", ["directory": .text(directory.path), "error": .text("\(error)")])
        }
    }

    private func take() throws {
        let backups = backups
        let backup = try waitFor { try await backups.begin(.schedule, origin: .server) }
        defer { backup.end() }
        let taken = try directory.take(backup, of: backups) { !isStopping.load(ordering: .acquiring) }
        backup.kept()
        log.notice(
            "took a backup", ["path": .text(taken.path), "bytes": .integer(Int64(taken.byteCount))])
        removeOld()
    }
}
