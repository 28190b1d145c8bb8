import Base

/// The process's loops: started together, stopped together.
public final class EventLoopGroup: Sendable {
    public let loops: [EventLoop]

    /// By default there is one loop per core that the process may use; `count` is at least 1.
    public init(count: Int = EventLoopGroup.coreCount, name: String = "loop") {
        precondition(count > 0, "a group needs a loop")
        self.loops = (0..<count).map { EventLoop(name: "\(name)-\($0)", number: $0) }
    }

    /// The cores that the process may use.
    public static var coreCount: Int { MachineShare.processorCount }

    /// The loop with the fewest connections, whose count rises by one. The code that closes the connection calls
    /// `loop.connections.add(-1)`. From any thread; two callers at once may get the same loop.
    public func next() -> EventLoop {
        var best = loops[0]
        var fewest = best.connections.value
        for loop in loops.dropFirst() {
            let count = loop.connections.value
            if count < fewest { (best, fewest) = (loop, count) }
        }
        best.connections.add(1)
        return best
    }

    /// The loop for a hash. The same hash always has the same loop.
    public func loop(for hash: UInt64) -> EventLoop { loops[Int(hash % UInt64(loops.count))] }

    /// The loop whose thread this is; nil on any other thread.
    public var current: EventLoop? { loops.first { $0.isCurrent } }

    public func start() {
        for loop in loops { loop.start() }
    }

    public func stop() {
        for loop in loops { loop.stop() }
    }

    /// Waits until every loop has ended.
    @available(*, noasync, message: "blocks the thread")
    public func join() {
        for loop in loops { loop.join() }
    }
}
