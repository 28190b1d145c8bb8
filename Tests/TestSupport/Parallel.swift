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

/// Runs a long test's two halves at once, for a machine with two processors. Each half makes what it needs for itself:
/// its directory, its server, its client.
///
/// `body` may block. Swift's pool may have no other thread, so that a server of the test has to be another process.
/// Failed expectations count for the test that calls this.
@discardableResult
public func inHalves<Value: Sendable>(
    _ body: @escaping @Sendable (_ half: Int) throws -> Value
) async throws -> [Value] {
    try await withThrowingTaskGroup(of: Value.self) { group in
        for half in 0..<2 { group.addTask { try body(half) } }
        var values: [Value] = []
        while let value = try await group.next() { values.append(value) }
        return values
    }
}

private func join(_ thread: OSThread) { thread.join() }
