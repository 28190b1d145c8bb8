import Base
import Glibc
import Reactor
import Testing

/// Tells a resident what its socket did, through closures that run on the loop.
private final class Events: SocketEvents {
    var readable: () -> Void = {}
    var writable: () -> Void = {}
    func socketIsReadable() { readable() }
    func socketIsWritable() { writable() }
}

@Suite struct FileWatchTests {
    @Test func readsAreToldUntilTheCauseIsGone() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            let sockets = SocketPair()
            let (here, there) = (sockets.here, sockets.there)
            resident.performOutsideTask { resident in
                let events = Events()
                let watch = FileWatch(on: loop, fileDescriptor: here, handler: events)
                var calls = 0
                events.readable = {
                    calls += 1
                    // Level-triggered: not reading at once brings the call again.
                    guard calls == 3 else { return }
                    resident.note("\(calls) \(receive(from: here))")
                    watch.cancel()
                }
                watch.setReading(true)
                send("hello", to: there)
            }
            let entries = try await resident.entries(1)
            #expect(entries == ["3 hello"])
            sockets.close()
        }
    }

    @Test func interestInReadingAndWritingIsSwitchedSeparately() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            let sockets = SocketPair()
            let (here, there) = (sockets.here, sockets.there)
            resident.performOutsideTask { resident in
                let events = Events()
                let watch = FileWatch(on: loop, fileDescriptor: here, handler: events)
                events.writable = {
                    resident.note("writable")
                    watch.setWriting(false)
                    watch.setReading(true)
                }
                events.readable = {
                    resident.note("readable \(receive(from: here))")
                    watch.setReading(false)
                    watch.cancel()
                }
                send("a", to: there)
                watch.setWriting(true)
                #expect(watch.isWriting && !watch.isReading)
            }
            let entries = try await resident.entries(2)
            #expect(entries == ["writable", "readable a"])
            sockets.close()
        }
    }

    @Test func aPeersCloseIsReadable() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            let sockets = SocketPair()
            let here = sockets.here
            resident.performOutsideTask { resident in
                let events = Events()
                let watch = FileWatch(on: loop, fileDescriptor: here, handler: events)
                events.readable = {
                    resident.note("end: \(receive(from: here).isEmpty)")
                    watch.cancel()
                }
                watch.setReading(true)
            }
            shutdown(sockets.there, Int32(SHUT_WR))
            let entries = try await resident.entries(1)
            #expect(entries == ["end: true"])
            sockets.close()
        }
    }

    @Test func aWatchCancelledInItsOwnCallbackIsNotCalledForItsOtherInterest() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            let sockets = SocketPair()
            let (here, there) = (sockets.here, sockets.there)
            resident.performOutsideTask { resident in
                let events = Events()
                let watch = FileWatch(on: loop, fileDescriptor: here, handler: events)
                let end = {
                    resident.note("called")
                    watch.cancel()
                    watch.cancel()
                    // The task runs behind everything that this turn's events could still bring.
                    Task { resident.note("later turn") }
                }
                events.readable = end
                events.writable = end
                send("x", to: there)
                watch.setReading(true)
                watch.setWriting(true)
            }
            let entries = try await resident.entries(2)
            #expect(entries == ["called", "later turn"])
            sockets.close()
        }
    }

    @Test func aWatchCancelledByAnotherOfTheSameTurnIsNotCalled() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            let pairs = (SocketPair(), SocketPair())
            let ends = [(pairs.0.here, pairs.0.there), (pairs.1.here, pairs.1.there)]
            resident.performOutsideTask { resident in
                var watches: [FileWatch] = []
                for (here, there) in ends {
                    let events = Events()
                    events.readable = {
                        resident.note("called")
                        for watch in watches { watch.cancel() }
                        Task { resident.note("later turn") }
                    }
                    watches.append(FileWatch(on: loop, fileDescriptor: here, handler: events))
                    send("x", to: there)
                }
                // Both sockets are readable before the loop looks again: one turn sees both.
                for watch in watches { watch.setReading(true) }
            }
            let entries = try await resident.entries(2)
            #expect(entries == ["called", "later turn"])
            pairs.0.close()
            pairs.1.close()
        }
    }

    @Test func aReusedNumberGetsNoEventOfItsPredecessor() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            let pairs = (SocketPair(), SocketPair())
            let quiet = SocketPair()
            let ends = [(pairs.0.here, pairs.0.there), (pairs.1.here, pairs.1.there)]
            let quietEnd = quiet.here
            resident.performOutsideTask { resident in
                var watches: [FileWatch] = []
                for (index, (here, there)) in ends.enumerated() {
                    let events = Events()
                    let other = ends[1 - index].0
                    events.readable = {
                        resident.note("called")
                        for watch in watches { watch.cancel() }
                        // The other watch is active in this turn, too; its descriptor's number now means a silent
                        // socket.
                        precondition(dup2(quietEnd, other) == other)
                        let fresh = Events()
                        let successor = FileWatch(on: loop, fileDescriptor: other, handler: fresh)
                        fresh.readable = { resident.note("stale") }
                        successor.setReading(true)
                        Task {
                            await Task.yield()
                            successor.cancel()
                            resident.note("later turn")
                        }
                    }
                    watches.append(FileWatch(on: loop, fileDescriptor: here, handler: events))
                    send("x", to: there)
                }
                for watch in watches { watch.setReading(true) }
            }
            let entries = try await resident.entries(2)
            #expect(entries == ["called", "later turn"])
            pairs.0.close()
            pairs.1.close()
            quiet.close()
        }
    }

    @Test func aWatchLetsItsHandlerGoWhenCancelled() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            let sockets = SocketPair()
            let here = sockets.here
            let isFreed = await resident.perform { _ in
                weak var freed: Events?
                let watch: FileWatch
                do {
                    let events = Events()
                    freed = events
                    watch = FileWatch(on: loop, fileDescriptor: here, handler: events)
                    watch.setReading(true)
                }
                guard freed != nil else { return false }
                watch.cancel()
                return freed == nil
            }
            #expect(isFreed)
            sockets.close()
        }
    }
}
