import Glibc
import Synchronization

/// Set by SIGINT and SIGTERM: a run that is cut short still writes what it has. A second signal ends the process, and
/// with it the server that it started.
enum Interruption {
    private static let count = Atomic<Int>(0)
    /// The process id of the started server; 0 for none.
    private static let server = Atomic<Int32>(0)
    private static let isHeld = Atomic<Bool>(false)

    static var isAsked: Bool { count.load(ordering: .relaxed) > 0 }

    static func listen() {
        for number in [SIGINT, SIGTERM] {
            signal(number) { _ in
                let isFirst = Interruption.count.add(1, ordering: .sequentiallyConsistent).oldValue == 0
                if !isFirst, !Interruption.isHeld.load(ordering: .sequentiallyConsistent) { Interruption.endNow() }
            }
        }
    }

    /// Runs `body`, which starts the server or notices its end, and returns the id of the server that there is then; 0
    /// for none. A second signal that comes meanwhile takes effect afterwards.
    static func changeServer(_ body: () -> Int32) {
        isHeld.store(true, ordering: .sequentiallyConsistent)
        server.store(body(), ordering: .sequentiallyConsistent)
        isHeld.store(false, ordering: .sequentiallyConsistent)
        if count.load(ordering: .sequentiallyConsistent) > 1 { endNow() }
    }

    /// Calls only functions that a signal handler may call (signal-safety(7)).
    private static func endNow() {
        let id = server.load(ordering: .sequentiallyConsistent)
        if id > 0 { _ = kill(id, SIGKILL) }
        _exit(BenchError.Kind.interrupted.rawValue)
    }
}
