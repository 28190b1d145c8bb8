import Base
import Glibc
import Synchronization
import Testing

@Suite struct OSThreadTests {
    private func runOnThread<Value: Sendable>(
        name: String = "test", _ body: @escaping @Sendable () -> Value
    ) -> Value? {
        let result = Mutex<Value?>(nil)
        let thread = OSThread(name: name) {
            let value = body()
            result.withLock { $0 = value }
        }
        thread.join()
        return result.withLock { $0 }
    }

    @Test func joiningWaitsForTheBodysEnd() {
        #expect(runOnThread { 7 } == 7)
    }

    @Test func joiningAgainDoesNothing() {
        let thread = OSThread(name: "twice") {}
        thread.join()
        thread.join()
    }

    @Test func aDetachedThreadRunsWithoutAnybodyJoiningIt() async throws {
        let done = Promise<pthread_t>()
        try OSThread.startDetached(name: "detached") { done.succeed(pthread_self()) }
        #expect(pthread_equal(try await done.value(), pthread_self()) == 0)
    }

    /// No machine has room for a stack of 64 TiB.
    @Test func aThreadThatCannotStartIsAnErrorAndItsBodyIsReleased() {
        final class Held: Sendable {}
        weak var weak: Held?
        do {
            let held = Held()
            weak = held
            let error = #expect(throws: ThreadError.self) {
                try OSThread.startDetached(name: "huge", stackByteCount: 1 << 46) { withExtendedLifetime(held) {} }
            }
            #expect(error.map { "\($0)" }?.hasPrefix("no thread could be started: ") == true)
        }
        #expect(weak == nil)
    }

    @Test func theBodyRunsOnAThreadOfItsOwn() {
        let here = pthread_self()
        #expect(runOnThread { pthread_equal(pthread_self(), here) } == 0)
    }

    @Test(arguments: [("loop-0", "loop-0"), ("a-name-of-more-than-15-bytes", "a-name-of-more-")])
    func theKernelKnowsItsName(given: String, seen: String) {
        #expect(runOnThread(name: given) { Self.currentThreadName() } == seen)
    }

    @Test func eachThreadHasANumberOfItsOwnAndKeepsIt() throws {
        let here = OSThread.currentNumber
        let numbers = try (0..<8).map { _ in
            let twice = try #require(runOnThread { [OSThread.currentNumber, OSThread.currentNumber] })
            #expect(twice[0] == twice[1])
            return twice[0]
        }
        #expect(Set(numbers + [here]).count == 9 && numbers.allSatisfy { $0 >= 0 })
    }

    private static func currentThreadName() -> String {
        let file = open("/proc/thread-self/comm", O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = read(file, &bytes, bytes.count)
        return String(decoding: bytes[..<max(0, count - 1)], as: UTF8.self)
    }

    @Test func whatTheBodyHoldsIsReleasedAfterIt() {
        final class Held: Sendable {}
        weak var weak: Held?
        do {
            let held = Held()
            weak = held
            let thread = OSThread(name: "holds") { withExtendedLifetime(held) {} }
            thread.join()
        }
        #expect(weak == nil)
    }
}

@Suite struct SemaphoreTests {
    @Test func everySignalLetsOneWaitThrough() {
        let semaphore = Semaphore()
        let passed = Counter()
        let thread = OSThread(name: "wait") {
            for _ in 0..<1_000 {
                semaphore.wait()
                passed.add()
            }
        }
        for _ in 0..<1_000 { semaphore.signal() }
        thread.join()
        #expect(passed.value == 1_000)
    }

    @Test func aWaitEndsWhenItsTimeIsUp() {
        let semaphore = Semaphore()
        let begin = Instant.now
        let came = waitOnThread(semaphore, .milliseconds(2))
        #expect(!came && Instant.now.nanoseconds(since: begin) >= 2_000_000)
    }

    @Test(arguments: [Duration.zero, .seconds(3_600), .seconds(Int64.max / 2)])
    func aSignalEndsAWait(atMost duration: Duration) {
        let semaphore = Semaphore()
        semaphore.signal()
        #expect(waitOnThread(semaphore, duration))
        #expect(!semaphore.takeSignal())
    }

    @Test func aNegativeTimeIsOver() { #expect(!waitOnThread(Semaphore(), .seconds(-5))) }

    private func waitOnThread(_ semaphore: Base.Semaphore, _ duration: Duration) -> Bool {
        let came = Mutex(false)
        let thread = OSThread(name: "wait") {
            let result = semaphore.wait(for: duration)
            came.withLock { $0 = result }
        }
        thread.join()
        return came.withLock { $0 }
    }
}
