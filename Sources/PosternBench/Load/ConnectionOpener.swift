import Base

/// A thread that opens connections one after the other, and keeps them.
///
/// One thread makes it, calls `start` and then `finish`, each once.
final class ConnectionOpener: @unchecked Sendable {
    // Unchecked: its own thread writes these; the owner reads them after it has joined the thread.
    private var connections: [Connection] = []
    private var took = Histogram()
    private var failure: (any Error)?

    private let numbers: StrideTo<Int>
    private let connect: (Int) throws -> Connection
    private var thread: OSThread?

    init(_ numbers: StrideTo<Int>, connect: @escaping (Int) throws -> Connection) {
        self.numbers = numbers
        self.connect = connect
    }

    func start() {
        thread = OSThread(name: "opener") { [self] in
            do {
                for number in numbers {
                    let begin = Instant.now
                    connections.append(try connect(number))
                    took.record(UInt64(max(0, Instant.now.nanoseconds(since: begin))))
                }
            } catch { failure = error }
        }
    }

    /// How long each connection took, in nanoseconds.
    func finish() throws -> Histogram {
        thread?.join()
        thread = nil
        if let failure { throw failure }
        return took
    }
}
