import Glibc
import Reactor

/// How the process handles signals.
///
/// | signal | what happens |
/// |---|---|
/// | TERM, INT, QUIT | the server stops in good order; a second signal ends it at once |
/// | HUP | the access log is opened and the certificates of TLS are read again; without either, nothing |
/// | USR1, USR2, ALRM, PIPE, … | nothing; the first of each is logged (PIPE is not) |
/// | TSTP, CONT | their usual effect in a shell's job control |
/// | SEGV, BUS, ILL, FPE, ABRT, TRAP, SYS | the process is broken and ends |
///
/// Settings are not read again at a HUP: they are read at the start, and everything else is in the store.
enum Signals {
    static let stopping = [SIGTERM, SIGINT, SIGQUIT]
    /// Signals that would end or stop the process though nobody meant that. With XFSZ ignored, a limit on the size of
    /// files becomes an error of the write.
    static let ignored = [
        SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT, SIGXCPU, SIGXFSZ, SIGTTIN,
        SIGTTOU,
    ]

    /// Call it before anything else, because a signal may come while the store opens.
    static func ignoreOthers() {
        for number in ignored { signal(number, SIG_IGN) }
        // The first two real-time signals are the C library's own.
        for number in 34...64 as ClosedRange<Int32> { signal(number, SIG_IGN) }
        SignalWatch.ignoreBrokenPipes()
    }
}
