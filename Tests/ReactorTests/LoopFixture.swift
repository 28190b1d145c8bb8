import Base
import Glibc
import Reactor

/// Runs `body` with a loop that is ended afterwards, whatever happens.
func withLoop<T>(_ body: (EventLoop) async throws -> T) async throws -> T {
    let loop = EventLoop(name: "test-loop")
    loop.start()
    do {
        let result = try await body(loop)
        end(loop)
        return result
    } catch {
        end(loop)
        throw error
    }
}

/// The same with a group.
func withGroup<T>(_ count: Int, _ body: (EventLoopGroup) async throws -> T) async throws -> T {
    let group = EventLoopGroup(count: count)
    group.start()
    do {
        let result = try await body(group)
        end(group)
        return result
    } catch {
        end(group)
        throw error
    }
}

func end(_ loop: EventLoop) {
    loop.stop()
    loop.join()
}

func end(_ group: EventLoopGroup) {
    group.stop()
    group.join()
}

/// An actor that lives on a loop and keeps a list, and whatever else a test puts on the loop.
actor Resident {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private(set) var entries: [String] = []
    private var waiting: [(count: Int, promise: Promise<Void>)] = []

    init(on loop: EventLoop) { self.loop = loop }

    func note(_ entry: String) {
        entries.append(entry)
        waiting.removeAll { waiter in
            guard entries.count >= waiter.count else { return false }
            waiter.promise.succeed(())
            return true
        }
    }

    /// Waits until `count` entries are there and returns them.
    func entries(_ count: Int) async throws -> [String] {
        if entries.count < count {
            let promise = Promise<Void>()
            waiting.append((count, promise))
            try await promise.value()
        }
        return entries
    }

    func perform<T: Sendable>(_ body: @Sendable (isolated Resident) throws -> T) rethrows -> T { try body(self) }

    /// Runs `body` on the loop outside any task, as a callback of C does.
    nonisolated func performOutsideTask(_ body: @escaping @Sendable (isolated Resident) -> Void) {
        loop.run { self.assumeIsolated(body) }
    }
}

/// Two connected, non-blocking sockets, closed with the pair.
final class SocketPair {
    let here: Int32
    let there: Int32
    private var isOpen = true

    init() {
        var ends: [Int32] = [0, 0]
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        precondition(socketpair(AF_UNIX, type, 0, &ends) == 0)
        (here, there) = (ends[0], ends[1])
    }

    func close() {
        guard isOpen else { return }
        isOpen = false
        Glibc.close(here)
        Glibc.close(there)
    }

    deinit { close() }
}

func send(_ text: String, to fileDescriptor: Int32) {
    let count = text.utf8.count
    precondition(write(fileDescriptor, text, count) == count)
}

/// The text that can be read now, at most 64 KiB; empty when there is none.
func receive(from fileDescriptor: Int32) -> String {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = read(fileDescriptor, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
}
