import Base
import Glibc
import Reactor
import Synchronization
import TestSupport
import Testing

@testable import Transport

/// When connections are accepted, and what a process without descriptors does with the waiting ones.
@Suite struct ListenerTests {
    /// Says whether there is room, and counts how often it was asked.
    private final class Room: Sendable {
        let asked = Counter()
        let isThere = Atomic(false)
        let accepted = Promise<Int32>()
    }

    private func withListener(_ room: Room, _ body: (EventLoop, Listener) async throws -> Void) async throws {
        let loop = EventLoop(name: "listener")
        loop.start()
        let listener = try Listener(
            #require(SocketAddress("127.0.0.1:0")), on: loop, log: .silent,
            mayAccept: { _ in
                room.asked.add()
                return room.isThere.load(ordering: .relaxed)
            }, accepted: { room.accepted.succeed($0) })
        listener.start()
        var thrown: (any Error)?
        do { try await body(loop, listener) } catch { thrown = error }
        listener.close()
        end(loop)
        if let thrown { throw thrown }
    }

    private func end(_ loop: EventLoop) {
        loop.stop()
        loop.join()
    }

    private func connect(to port: UInt16) -> Int32 {
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafeBytes(of: &address) {
            Glibc.connect(client, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, 16)
        }
        precondition(code == 0, "connect: errno \(errno)")
        return client
    }

    /// Readiness is told again every turn: a listener that ignored it would keep the loop busy for nothing.
    @Test func whileThereIsNoRoomNobodyAsksAgainAndAgain() async throws {
        let room = Room()
        try await withListener(room) { loop, listener in
            let client = connect(to: listener.address.port)
            defer { _ = Glibc.close(client) }
            try await until("the listener asks") { room.asked.value > 0 }
            for _ in 0..<1_000 {
                let turned = Promise<Void>()
                loop.run { turned.succeed(()) }
                try await turned.value()
            }
            #expect(room.asked.value == 1)
            room.isThere.store(true, ordering: .relaxed)
            listener.resume()
            _ = Glibc.close(try await room.accepted.value())
        }
    }

    @Test func `A listener without descriptors closes who waits, and accepts the next connection`() async throws {
        let room = Room()
        room.isThere.store(true, ordering: .relaxed)
        try await withListener(room) { loop, listener in
            #expect(closesWithoutDescriptors(loop, listener))
            let next = connect(to: listener.address.port)
            defer { _ = Glibc.close(next) }
            _ = Glibc.close(try await room.accepted.value())
        }
    }

    /// Whether the listener closes a connection in ten seconds. The descriptors run out while the connection waits in
    /// the kernel's queue, and meanwhile the loop does nothing.
    private func closesWithoutDescriptors(_ loop: EventLoop, _ listener: Listener) -> Bool {
        let (isHeld, mayGoOn) = (Base.Semaphore(), Base.Semaphore())
        loop.run {
            isHeld.signal()
            mayGoOn.wait()
        }
        isHeld.wait()
        let client = connect(to: listener.address.port)
        defer { _ = Glibc.close(client) }
        return withDescriptors(left: 0) {
            mayGoOn.signal()
            var waiting = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
            var byte: UInt8 = 0
            return poll(&waiting, 1, 10_000) == 1 && recv(client, &byte, 1, 0) == 0
        }
    }

    @Test func `A turn accepts no more connections than its bound, and none while there is no room`() throws {
        let socket = try ListeningSocket(.loopback(), backlog: 16)
        defer { socket.close() }
        let clients = (0..<5).map { _ in connect(to: socket.address.port) }
        var accepted: [Int32] = []
        #expect(socket.acceptWaiting(countMax: 2, while: { false }, { _ in Issue.record("accepted") }) == nil)
        while accepted.count < clients.count {
            let before = accepted.count
            let code = socket.acceptWaiting(countMax: 2, while: { true }) { accepted.append($0) }
            try #require(code == nil && accepted.count <= before + 2)
        }
        for descriptor in clients + accepted { _ = Glibc.close(descriptor) }
    }

    @Test func `The HTTP port says so when it cannot accept, as the RPC port does`() throws {
        let lines = Counter()
        let loop = EventLoop(name: "http")
        let server = try HTTPServer(
            on: loop, at: .loopback(), routes: [:], log: Log(level: .warning, sink: { _ in lines.add() }))
        // accept(2) of a socket that listens no longer fails with EINVAL.
        _ = shutdown(server.socket.descriptor, Int32(SHUT_RDWR))
        server.socketIsReadable()
        #expect(lines.value == 1)
        server.close()
    }

    @Test func `A port that cannot accept writes one line a second`() {
        let lines = Counter()
        var warnings = AcceptWarnings(log: Log(level: .warning, sink: { _ in lines.add() }))
        warnings.pauses(code: EMFILE)
        warnings.sheds()
        #expect(lines.value == 1)
    }

    /// The descriptors that the kernel gives out and takes back.
    private final class Descriptors {
        var isExhausted = false
        var open: Set<Int32> = []

        func reserve() -> DescriptorReserve {
            DescriptorReserve(
                open: { [self] in
                    guard !isExhausted else { return -1 }
                    open.insert(7)
                    return 7
                },
                close: { [self] in open.remove($0) })
        }
    }

    @Test func aReserveThatWasLostIsTakenAgainAsSoonAsThereIsOne() {
        let descriptors = Descriptors()
        var reserve = descriptors.reserve()
        var shed = 0
        #expect(reserve.use { shed += 1 } && shed == 1 && descriptors.open == [7])
        // Another thread takes the descriptor at the moment when it is free.
        #expect(reserve.use { descriptors.isExhausted = true })
        #expect(descriptors.open.isEmpty)
        for _ in 0..<3 { #expect(!reserve.use { shed += 1 }) }
        descriptors.isExhausted = false
        #expect(reserve.use { shed += 1 } && shed == 2 && descriptors.open == [7])
        reserve.giveUp()
        #expect(descriptors.open.isEmpty)
    }
}
