import Base
import Synchronization

@testable import Store

/// Holds the writer inside of a body, so that what is queued meanwhile becomes one batch.
final class WriterGate: Sendable {
    private let entered = Semaphore()
    private let opened = Semaphore()

    func close(_ store: Store) throws {
        try store.write { [entered, opened] _ in
            entered.signal()
            opened.wait()
        } completion: { _ in
        }
        entered.wait()
    }

    func open() { opened.signal() }
}

/// Collects the outcomes of callback writes in the order they come.
final class WriteOutcomes: Sendable {
    private let list = Mutex<[(Int, StoreError?)]>([])
    private let arrived = Semaphore()

    func record(_ number: Int, _ result: Result<some Sendable, any Error>) {
        var error: StoreError?
        if case .failure(let failure) = result {
            error = failure as? StoreError ?? .system(code: 0, operation: "other")
        }
        list.withLock { $0.append((number, error)) }
        arrived.signal()
    }

    func wait(for count: Int) -> [(number: Int, error: StoreError?)] {
        for _ in 0..<count { arrived.wait() }
        return list.withLock { $0 }
    }
}
