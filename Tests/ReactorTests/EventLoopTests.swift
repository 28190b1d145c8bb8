import Base
import Glibc
import Reactor
import Synchronization
import Testing

@Suite struct EventLoopTests {
    @Test func anActorOnALoopRunsOnItsThread() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            #expect(await resident.perform { $0.loop.isCurrent })
            #expect(!loop.isCurrent)
        }
    }

    @Test func anAwaitWithinOneLoopContinuesInline() async throws {
        actor Caller {
            nonisolated let loop: EventLoop
            nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
            init(on loop: EventLoop) { self.loop = loop }

            func call(_ other: Resident) async -> [String] {
                // The rival is enqueued first: it would run between the two awaits if those went through the queue.
                let rival = Task { await other.note("rival") }
                await other.note("first")
                await other.note("second")
                let entries = await other.entries
                await rival.value
                return entries
            }
        }
        try await withLoop { loop in
            let entries = await Caller(on: loop).call(Resident(on: loop))
            #expect(entries == ["first", "second"])
        }
    }

    @Test func jobsRunInTheOrderTheyWereEnqueued() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            await resident.perform { resident in
                for number in 0..<1_000 { Task { resident.note("\(number)") } }
            }
            let entries = try await resident.entries(1_000)
            #expect(entries == (0..<1_000).map { "\($0)" })
        }
    }

    /// Jobs that a thread hands over while it puts its wake-ups off run when it has handed over all, or when another
    /// thread wakes the loop.
    @Test func heldWakeUpsWakeALoopOnce() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            let promises = (0..<3).map { _ in Promise<Void>() }
            for (number, promise) in promises.enumerated() {
                Task(executorPreference: loop) {
                    try await promise.value()
                    await resident.note("\(number)")
                }
            }
            // This runs behind the tasks' first parts on the loop.
            await resident.note("tasks wait")
            completeTogether(promises)
            // In any order: a task whose first part was late finds its promise completed.
            let entries = try await resident.entries(4)
            #expect(Set(entries) == ["tasks wait", "0", "1", "2"])
        }
    }

    @Test func aTaskThatPrefersTheLoopResumesThere() async throws {
        func whereAmI(_ loop: EventLoop, after promise: Promise<Void>) async throws -> [Bool] {
            let before = loop.isCurrent
            try await promise.value()
            return [before, loop.isCurrent]
        }
        try await withLoop { loop in
            let promise = Promise<Void>()
            let task = Task(executorPreference: loop) { try await whereAmI(loop, after: promise) }
            // This runs behind the task's first part on the loop; the promise is completed from another thread.
            await Resident(on: loop).note("task waits")
            promise.succeed(())
            let places = try await task.value
            #expect(places == [true, true])
        }
    }

    @Test func aPreferringTaskCallsActorsOfBothLoops() async throws {
        try await withGroup(2) { group in
            let residents = group.loops.map { Resident(on: $0) }
            let task = Task(executorPreference: group.loops[0]) {
                for number in 0..<100 { await residents[number % 2].note("\(number)") }
                return group.loops[0].isCurrent
            }
            #expect(await task.value)
            #expect(await residents[0].entries.count == 50)
            #expect(await residents[1].entries.count == 50)
        }
    }

    @Test func twoLoopsCallEachOther() async throws {
        actor Counter {
            nonisolated let loop: EventLoop
            nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
            var count = 0
            init(on loop: EventLoop) { self.loop = loop }

            func volley(_ other: Counter?, _ rounds: Int) async -> Bool {
                count += 1
                guard rounds > 0, let other else { return loop.isCurrent }
                let wasThere = await other.volley(nil, 0)
                let isBack = loop.isCurrent
                return await volley(other, rounds - 1) && wasThere && isBack
            }
        }
        try await withGroup(2) { group in
            let (left, right) = (Counter(on: group.loops[0]), Counter(on: group.loops[1]))
            #expect(await left.volley(right, 500))
            #expect(await right.count == 500)
        }
    }

    @Test func manyThreadsReachOneLoop() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            await withDiscardingTaskGroup { group in
                for _ in 0..<1_000 { group.addTask { await resident.note("x") } }
            }
            #expect(await resident.entries.count == 1_000)
        }
    }

    @Test func aCallbackEntersAnActorWithoutAHop() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            resident.performOutsideTask { $0.note("inside") }
            let entries = try await resident.entries(1)
            #expect(entries == ["inside"])
        }
    }

    @Test func callsRunInTheirOrderAndBeforeStartToo() async throws {
        let loop = EventLoop(name: "late")
        let resident = Resident(on: loop)
        resident.performOutsideTask { $0.note("first") }
        resident.performOutsideTask { $0.note("second") }
        loop.start()
        let entries = try await resident.entries(2)
        #expect(entries == ["first", "second"])
        end(loop)
    }

    @Test func aStormOfJobsDoesNotStarveASocket() async throws {
        actor Storm: SocketEvents {
            nonisolated let loop: EventLoop
            nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
            var wasReadable = false
            init(on loop: EventLoop) { self.loop = loop }

            nonisolated func socketIsReadable() { assumeIsolated { $0.wasReadable = true } }
            nonisolated func socketIsWritable() {}

            /// Enqueues itself again and again until the socket got its turn.
            func rage(here: Int32, there: Int32) async -> Int {
                let watch = FileWatch(on: loop, fileDescriptor: here, handler: self)
                watch.setReading(true)
                send("x", to: there)
                var rounds = 0
                while !wasReadable {
                    await Task.yield()
                    rounds += 1
                }
                watch.cancel()
                return rounds
            }
        }
        try await withLoop { loop in
            let sockets = SocketPair()
            let (here, there) = (sockets.here, sockets.there)
            // The preference keeps each yield on the loop: its queue is never empty.
            let rage = Task(executorPreference: loop) { await Storm(on: loop).rage(here: here, there: there) }
            let rounds = await rage.value
            // At most the jobs of one turn run before the next turn looks at the sockets.
            #expect(rounds > 0 && rounds <= 256)
            sockets.close()
        }
    }

    @Test func endOfTurnCallsComeAfterTheTurnsJobs() async throws {
        final class Flush: EndOfTurn {
            let resident: Resident
            init(_ resident: Resident) { self.resident = resident }
            func turnEnded() { resident.assumeIsolated { $0.note("flush") } }
        }
        try await withLoop { loop in
            let resident = Resident(on: loop)
            await resident.perform { resident in
                loop.atEndOfTurn(Flush(resident))
                Task { resident.note("job") }
            }
            let entries = try await resident.entries(2)
            #expect(entries == ["job", "flush"])
        }
    }

    @Test func anEndOfTurnCallMayAskForTheNextOne() async throws {
        final class Flush: EndOfTurn {
            let resident: Resident
            var rounds = 3
            init(_ resident: Resident) { self.resident = resident }
            func turnEnded() {
                resident.assumeIsolated { $0.note("flush") }
                rounds -= 1
                if rounds > 0 { resident.loop.atEndOfTurn(self) }
            }
        }
        try await withLoop { loop in
            let resident = Resident(on: loop)
            await resident.perform { loop.atEndOfTurn(Flush($0)) }
            let entries = try await resident.entries(3)
            #expect(entries.count == 3)
        }
    }

    @Test func stopWorksOffWhatIsQueued() async throws {
        let loop = EventLoop(name: "stopping")
        let resident = Resident(on: loop)
        for number in 0..<1_000 { resident.performOutsideTask { $0.note("\(number)") } }
        let done = Task { try await resident.entries(1_000).count }
        loop.start()
        #expect(try await done.value == 1_000)
        end(loop)
        #expect(!loop.isCurrent)
    }

    @Test(.timeLimit(.minutes(1))) func stopEndsAnIdleLoopAndOneThatWasStoppedBeforeItsStart() {
        let idle = EventLoop(name: "idle")
        idle.start()
        end(idle)
        let early = EventLoop(name: "early")
        early.stop()
        early.start()
        early.join()
    }

    @Test func aLoopIsFreedAfterItsEnd() {
        weak var freed: EventLoop?
        do {
            let loop = EventLoop(name: "freed")
            freed = loop
            loop.start()
            end(loop)
        }
        #expect(freed == nil)
    }

    @Test(.timeLimit(.minutes(1))) func stopEndsALoopWhoseJobsNeverEnd() async throws {
        let loop = EventLoop(name: "restless")
        loop.start()
        // The task never returns: it is left behind on purpose when the loop ends.
        Task(executorPreference: loop) { while true { await Task.yield() } }
        await Resident(on: loop).note("the task runs")
        end(loop)
    }
}

private func completeTogether(_ promises: [Promise<Void>]) {
    let held = HeldWakeups()
    held.begin()
    for promise in promises { promise.succeed(()) }
    held.end()
}
