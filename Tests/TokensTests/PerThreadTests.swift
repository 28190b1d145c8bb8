import Base
import Synchronization
import TestSupport
import Testing

@testable import Tokens

@Suite struct PerThreadTests {
    @Test(arguments: [1, 3, 16])
    func `Threads use the values in turn, and each always the same`(count: Int) async throws {
        var made = 0
        let values = PerThread<Mutex<Int>>(count: count) {
            made += 1
            return Mutex(made - 1)
        }
        #expect(made == count)
        let results = try await atOnce(40) { _ -> (number: Int, seen: [Int]) in
            let seen = (0..<3).map { _ in values.withOwn { value in value.withLock { $0 } } }
            return (OSThread.currentNumber, seen)
        }
        #expect(results.count == 40)
        for result in results {
            let (number, seen) = try result.get()
            #expect(seen == Array(repeating: number % count, count: 3), "thread \(number)")
        }
    }

    @Test func `There are as many values as processors, but 16 at most`() {
        let counts = [-1, 0, 1, 2, 16, 17, 1_000].map { PerThread<Mutex<Int>>.count(forThreads: $0) }
        #expect(counts == [1, 1, 1, 2, 16, 16, 16])
        #expect((1...16).contains(PerThread<Mutex<Int>>.count()))
    }
}
