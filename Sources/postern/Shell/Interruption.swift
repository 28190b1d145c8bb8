import Base
import Glibc
import Synchronization

/// The signals SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal is gone). The first one cancels the command, so that
/// it can say what may have been done, and remove its unfinished files. A second one ends the process at once, and so
/// does the first one if the command has not ended two seconds later.
///
/// The handler only calls functions that a signal handler may call (signal-safety(7)): a thread does the rest.
enum Interruption {
    private static let patience = Duration.seconds(2)
    /// The number of the first signal; 0: none came.
    private static let first = Atomic<Int32>(0)
    private static let arrivals = Semaphore()
    /// What standard error says if the process ends before the command could say it.
    private static let lastWords = Mutex<[UInt8]>([])

    /// True once a signal came.
    static var isAsked: Bool { first.load(ordering: .sequentiallyConsistent) != 0 }

    /// From now on a change may have been made. A command that blocks, because nobody reads what it prints, cannot say
    /// so.
    static func noteChange() {
        let words = "postern was interrupted: a change may have been made, or a part of it\n"
        lastWords.withLock { $0 = [UInt8](words.utf8) }
    }

    /// Listens from now on. `cancel` is called when the first signal comes.
    static func listen(_ cancel: @escaping @Sendable () -> Void) {
        // Without the thread, a signal ends the process as it does by default.
        guard (try? startThread(cancel)) != nil else { return }
        for number in [SIGINT, SIGTERM, SIGHUP] {
            let before = signal(number) { number in
                _ = Interruption.first.compareExchange(
                    expected: 0, desired: number, ordering: .sequentiallyConsistent)
                Interruption.arrivals.signal()
            }
            // A shell starts a program in the background, and nohup starts any, with signals that it shall ignore.
            if unsafeBitCast(before, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self) { signal(number, SIG_IGN) }
        }
    }

    private static func startThread(_ cancel: @escaping @Sendable () -> Void) throws(ThreadError) {
        // Made here: a handler must not be the first to use them.
        _ = (isAsked, arrivals.takeSignal())
        try OSThread.startDetached(name: "signals") {
            Interruption.arrivals.wait()
            cancel()
            _ = Interruption.arrivals.wait(for: Interruption.patience)
            let words = Interruption.lastWords.withLock { $0 }
            _ = write(STDERR_FILENO, words, words.count)
            Interruption.endProcess()
        }
    }

    /// Ends the process by the signal that came, as it would have ended without a handler: a shell whose command ended
    /// by SIGINT ends its loop, too. Does nothing if no signal came.
    static func endProcess() {
        let arrived = first.load(ordering: .sequentiallyConsistent)
        guard arrived != 0 else { return }
        signal(arrived, SIG_DFL)
        // Threads of the runtime block signals.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, arrived)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(arrived)
        // The first process of a container takes no signal without a handler.
        _exit(128 + arrived)
    }

    /// Waits until there is something to read, or the end of it, and returns true. Returns false if a signal comes.
    static func waitForInput(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        while !isAsked {
            let count = poll(&entry, 1, 100)
            // Reading tells what is wrong with the descriptor.
            if count > 0 || count < 0 && errno != EINTR { return true }
        }
        return false
    }
}
