import Glibc
import Synchronization

/// Set by SIGINT and SIGTERM: a run that is cut short still writes what it has. A second signal ends the process.
enum Interruption {
    private static let count = Atomic<Int>(0)

    static var isAsked: Bool { count.load(ordering: .relaxed) > 0 }

    static func listen() {
        for number in [SIGINT, SIGTERM] {
            signal(number) { _ in
                if Interruption.count.add(1, ordering: .relaxed).oldValue > 0 {
                    _exit(BenchError.Kind.interrupted.rawValue)
                }
            }
        }
    }
}
