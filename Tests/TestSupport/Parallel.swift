import Base
import Synchronization

/// Runs `body` on `count` threads at once, each with its number, and returns the results in that order.
public func atOnce<Value: Sendable>(
    _ count: Int, _ body: @escaping @Sendable (Int) throws -> Value
) async throws -> [Result<Value, any Error>] {
    let results = Mutex<[Int: Result<Value, any Error>]>([:])
    let done = Promise<Void>()
    let runner = OSThread(name: "at-once") {
        let threads = (0..<count).map { number in
            OSThread(name: "caller") {
                let result = Result { try body(number) }
                results.withLock { $0[number] = result }
            }
        }
        for thread in threads { thread.join() }
        done.succeed(())
    }
    try await done.value()
    join(runner)
    return results.withLock { results in (0..<count).compactMap { results[$0] } }
}

private func join(_ thread: OSThread) { thread.join() }
