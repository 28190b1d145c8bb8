import Base
import Reactor
import Synchronization
import Testing

@testable import Transport

/// A server that listens nowhere by itself: its connections are adopted. `loop` is its first event loop.
struct LoopServer {
    let server: Server
    let loop: EventLoop

    static func run(
        _ dispatcher: any Dispatcher = Echo(), limits: Limits = Limits(), loops count: Int = 1, log: Log = .silent,
        _ body: (LoopServer) async throws -> Void
    ) async throws {
        let loops = EventLoopGroup(count: count, name: "adopted")
        let server = Server(loops: loops, dispatcher: dispatcher, limits: limits, log: log, software: "test/1")
        loops.start()
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body(LoopServer(server: server, loop: loops.loops[0])))
        } catch { outcome = .failure(error) }
        await server.closeAll()
        end(loops)
        try outcome.get()
    }

    private static func end(_ loops: EventLoopGroup) {
        loops.stop()
        loops.join()
    }

    /// Runs `body` while the loop does nothing, so that everything it brings about is there when the loop looks again.
    func whileHeld(_ body: () throws -> Void) rethrows {
        let (isHeld, mayGoOn) = (Base.Semaphore(), Base.Semaphore())
        loop.run {
            isHeld.signal()
            mayGoOn.wait()
        }
        isHeld.wait()
        defer { mayGoOn.signal() }
        try body()
    }

    /// Counts memory as if other connections of a line held it. Returns when it is counted.
    func hold(_ byteCount: Int, line: Text) {
        let isDone = Base.Semaphore()
        let memory = server.memory
        loop.run {
            memory.add(byteCount, loop: 0)
            memory.enter(line).add(byteCount)
            isDone.signal()
        }
        isDone.wait()
    }
}

extension LoopServer {
    /// How many connections are not read from, for a server with one loop.
    var pausedCount: Int {
        let connections = server.state.withLock { Array($0.connections.values) }
        let (count, isDone) = (Gauge(), Base.Semaphore())
        loop.run {
            let paused = connections.filter { $0.assumeIsolated { $0.readingPausedSince != nil } }
            count.set(Int64(paused.count))
            isDone.signal()
        }
        isDone.wait()
        return Int(count.value)
    }
}
