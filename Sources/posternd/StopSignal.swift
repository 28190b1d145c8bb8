import Base
import Glibc
import Reactor

/// Waits for a signal to stop, and makes sure that the stop ends in time.
final class StopSignal: @unchecked Sendable {
    // Unchecked: `watch`, `count` and `seen` are touched on the loop only.
    private let arrived = Semaphore()
    private let loop: EventLoop
    private let log: Log
    private let timeout: Duration
    private let onHangup: (@Sendable () -> Void)?
    private var watch: SignalWatch?
    private var count = 0
    private var seen: Set<Int32> = []

    /// The time that a stop may take beyond the drain: for the last commit, and the log's last lines.
    static let grace = Duration.seconds(2)
    /// The exit status of a stop that took too long (EX_TEMPFAIL).
    static let tooLate: Int32 = 75

    /// `timeout`: how long a stop may wait for calls in flight. `onHangup` must be quick.
    init(loop: EventLoop, timeout: Duration, log: Log, onHangup: (@Sendable () -> Void)? = nil) {
        self.loop = loop
        self.onHangup = onHangup
        self.log = log
        self.timeout = timeout
        // The watch must run before anybody is told that the server is ready, and may stop it at once.
        let isWatching = Semaphore()
        loop.run { [self] in
            watch = SignalWatch(on: loop, signals: Signals.stopping + Signals.ignored) { [weak self] in
                self?.received($0)
            }
            isWatching.signal()
        }
        isWatching.wait()
    }

    private func received(_ number: Int32) {
        if number == SIGHUP, let onHangup {
            onHangup()
            return log.notice("SIGHUP: the access log is opened again, certificates are read again", [:])
        }
        guard Signals.stopping.contains(number) else {
            if seen.insert(number).inserted {
                log.notice("a signal was ignored", ["signal": .integer(Int64(number))])
            }
            return
        }
        count += 1
        if count > 1 { _exit(1) }
        endInTime()
        arrived.signal()
    }

    /// The rest of a stop waits for the disk, which may not answer any more. Then a thread of its own ends the process.
    /// Only writes that were not acknowledged are lost.
    private func endInTime() {
        let (log, limit) = (log, timeout + Self.grace)
        do throws(ThreadError) {
            try OSThread.startDetached(name: "stop-watchdog", stackByteCount: 256 * 1024) {
                let end = Instant.now.advanced(by: limit)
                while Instant.now < end { usleep(50_000) }
                log.error(
                    "the stop took too long, the process ends; a write may be waiting for the disk",
                    ["seconds": .integer(limit.components.seconds)])
                log.close()
                _exit(Self.tooLate)
            }
        } catch {
            log.warning("the time of the stop is not watched", ["error": .text("\(error)")])
        }
    }

    func wait() { arrived.wait() }

    func cancel() {
        let done = Semaphore()
        loop.run { [self] in
            watch?.cancel()
            watch = nil
            done.signal()
        }
        done.wait()
    }
}
