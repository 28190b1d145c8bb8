import Base
import Synchronization
import Transport

/// Looks for new certificates, at SIGHUP and every few seconds, on a thread of its own, because it reads files.
final class CertificateReloader: Sendable {
    private static let lookEvery = Duration.seconds(2)

    private let thread: OSThread
    private let woken = Semaphore()
    private let flags: Flags

    /// The flags by which other threads tell the reloader's thread what to do.
    private final class Flags: Sendable {
        let isStopping = Atomic<Bool>(false)
        let isAsked = Atomic<Bool>(false)
    }

    init(_ tls: ServerTLS) {
        let (woken, flags) = (woken, Flags())
        self.flags = flags
        thread = OSThread(name: "certificates", stackByteCount: 512 * 1024) {
            while true {
                _ = woken.wait(for: Self.lookEvery)
                if flags.isStopping.load(ordering: .acquiring) { return }
                let isAsked = flags.isAsked.exchange(false, ordering: .acquiringAndReleasing)
                tls.reload(onlyIfChanged: !isAsked)
            }
        }
    }

    /// Has the files read now, whether they look changed or not. Returns at once; any thread.
    func reload() {
        flags.isAsked.store(true, ordering: .releasing)
        woken.signal()
    }

    func stop() {
        flags.isStopping.store(true, ordering: .releasing)
        woken.signal()
        thread.join()
    }
}
