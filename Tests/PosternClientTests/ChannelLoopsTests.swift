import Base
import Glibc
import Messages
import Synchronization
import TestSupport
import Testing

@testable import PosternClient

/// Channels that share threads. One test at a time: they count the threads of the process.
@Suite(.serialized, .timeLimit(.minutes(2))) struct ChannelLoopsTests {
    /// The threads of this process that are loops of channels.
    private static func loopThreadCount() -> Int {
        guard let tasks = opendir("/proc/self/task") else { return 0 }
        defer { closedir(tasks) }
        var count = 0
        while let entry = readdir(tasks) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            let file = open("/proc/self/task/\(name)/comm", O_RDONLY)
            guard file >= 0 else { continue }
            defer { close(file) }
            var bytes = [UInt8](repeating: 0, count: 64)
            let byteCount = read(file, &bytes, 64)
            if byteCount > 0, bytes.prefix(byteCount) == [UInt8]("postern-client\n".utf8)[...] { count += 1 }
        }
        return count
    }

    private static func makeShared() async throws {
        _ = try Channel(address: "127.0.0.1:1", credentials: .none)
        try await until { loopThreadCount() >= 1 }
    }

    @Test func `A thousand channels that all call have one thread, and leave nothing open`() async throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        try await Self.makeShared()
        try await NamedServer.with("a") { server in
            let before = Self.loopThreadCount()
            let channels = try (0..<1_000).map { _ in try Channel(address: server.address, credentials: .none) }
            try await withThrowingTaskGroup(of: Text.self) { group in
                for channel in channels { group.addTask { try await askName(channel) } }
                for try await name in group { #expect(name == "a") }
            }
            #expect(server.connectionCount == 1_000)
            #expect(Self.loopThreadCount() == before)
            await withTaskGroup(of: Void.self) { group in
                for channel in channels { group.addTask { await channel.shutdown() } }
            }
            try await until { server.connectionCount == 0 }
        }
    }

    @Test func `Loops of one's own have so many threads, which end with the last channel on them`() async throws {
        try await Self.makeShared()
        let before = Self.loopThreadCount()
        try await NamedServer.with("a") { server in
            var options = ChannelOptions()
            options.loops = ChannelLoops(threadCount: 3)
            var channels: [Channel] = []
            for _ in 0..<7 {
                channels.append(try Channel(address: server.address, credentials: .none, options: options))
            }
            options = ChannelOptions()
            for channel in channels { #expect(try await askName(channel) == "a") }
            #expect(Self.loopThreadCount() == before + 3)
            for channel in channels.dropLast() { await channel.shutdown() }
            channels.removeFirst(6)
            #expect(Self.loopThreadCount() == before + 3)
            // The channels are dropped without being shut down.
            channels = []
            try await until { Self.loopThreadCount() == before }
            try await until { server.connectionCount == 0 }
        }
    }

    @Test func `There is one thread at least, and 64 at most`() {
        #expect([-1, 0, 1, 64, 65].map { ChannelLoops(threadCount: $0).threadCount } == [1, 1, 1, 64, 64])
    }

    @Test func `A process without descriptors gets no channel, and one as soon as it has some`() async throws {
        try await NamedServer.with("a") { server in
            var options = ChannelOptions()
            options.loops = ChannelLoops(threadCount: 2)
            let make = { () throws(Failure) in
                try Channel(address: server.address, credentials: .none, options: options)
            }
            for count in [0, 1, 2] {
                let failure = withDescriptors(left: count) { () -> Failure? in
                    do throws(Failure) {
                        _ = try make()
                        return nil
                    } catch {
                        return error
                    }
                }
                #expect(failure?.reason == "CONNECTION_FAILED" && failure?.code == .unavailable)
            }
            let first = try make()
            #expect(try await askName(first) == "a")
            // There is no descriptor for a second thread: the channel shares the first one.
            let second = try withDescriptors(left: 0) { () throws(Failure) in try make() }
            #expect(try await askName(second) == "a")
            // Now there are descriptors.
            let before = Self.loopThreadCount()
            let third = try make()
            let fourth = try make()
            for channel in [third, fourth] { #expect(try await askName(channel) == "a") }
            #expect(Self.loopThreadCount() == before + 1)
            for channel in [first, second, third, fourth] { await channel.shutdown() }
        }
    }

    @Test func `A channel that is dropped closes its connection and fails its streams`() async throws {
        let (isThere, hungUp) = (Promise<Void>(), Promise<Bool>())
        let server = ScriptedServer { peer, _ in
            peer.greet()
            isThere.succeed(())
            while peer.receive() != nil {}
            hungUp.succeed(peer.isClosedByClient)
        }
        var channel: Channel? = try Channel(address: server.address, credentials: .none)
        let stream: ServerStream<ProjectServerInfoResponse>? = try await channel?.serverStream(
            "test.Names", "Watch", ProjectServerInfoRequest())
        try await isThere.value()
        channel = nil
        let failure = await #expect(throws: Failure.self) {
            for try await _ in try #require(stream) {}
        }
        #expect(failure?.reason == "CHANNEL_CLOSED")
        #expect(try await hungUp.value())
        server.stop()
    }

    @Test func `A channel that waits in vain holds up no other on the same thread`() async throws {
        let mute = ScriptedServer { peer, _ in while peer.receive() != nil {} }
        try await NamedServer.with("a") { server in
            var options = ChannelOptions()
            options.loops = ChannelLoops(threadCount: 1)
            let waiting = try Channel(address: mute.address, credentials: .none, options: options)
            let call = Task { try await askName(waiting) }
            let other = try Channel(address: server.address, credentials: .none, options: options)
            for _ in 0..<100 { #expect(try await askName(other) == "a") }
            await waiting.shutdown()
            let failure = await #expect(throws: Failure.self) { try await call.value }
            #expect(failure?.reason == "CHANNEL_CLOSED")
            #expect(try await askName(other) == "a")
            await other.shutdown()
        }
        mute.stop()
    }

    @Test func `Work before connecting has so many threads, and only so much waits for them`() async throws {
        let workers = PreparationWorkers(threadsMax: 1, waitingMax: 2)
        let (begun, gate, done) = (Promise<Void>(), Semaphore(), Promise<Void>())
        let order = Recording<Int>()
        #expect(
            workers.run {
                begun.succeed(())
                gate.wait()
                order.append(0)
            })
        try await begun.value()
        #expect(workers.run { order.append(1) })
        #expect(
            workers.run {
                order.append(2)
                done.succeed(())
            })
        #expect(!workers.run { order.append(3) })
        gate.signal()
        try await done.value()
        #expect(order.elements == [0, 1, 2])
    }
}
