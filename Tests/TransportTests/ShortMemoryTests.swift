import Base
import Messages
import TestSupport
import Testing
import Wire

@testable import Transport

/// While other connections hold most of the memory, one that is owed nothing goes on: what it has sent is decoded, and
/// the rest of a frame is read when there is memory for it. A line that holds little is read from at once.
@Suite struct ShortMemoryTests {
    private static let share = 8 * 1024

    /// A frame may take `frameTimeout`; the connections may hold 8 MiB.
    private static func limits(frameTimeout: Duration = .seconds(60)) -> Limits {
        var limits = Limits()
        limits.connectionMemoryMax = 8 << 20
        limits.connectionMemoryShare = share
        limits.frameTimeout = frameTimeout
        return limits
    }

    /// Above three quarters of what the connections may hold, and below seven eighths.
    private static let scarce = (8 << 20) / 16 * 13
    /// Above seven eighths.
    private static let exhausted = (8 << 20) / 16 * 15

    private static func connect(_ server: LoopServer) throws -> RawClient {
        let (client, theirs) = try RawClient.pair()
        server.server.adopt(theirs)
        _ = try client.hello()
        let _: WireKeyValue = try client.call(Echo.echo, WireKeyValue(key: "first"))
        return client
    }

    @Test func `Requests that came together are answered although they are more than a share`() async throws {
        try await LoopServer.run(limits: Self.limits()) { server in
            let client = try Self.connect(server)
            server.hold(Self.scarce, line: Echo.line)
            let text = Text(String(repeating: "x", count: 1_000))
            let count = 4 * Self.share / 1_000
            let requests = (0..<count).flatMap { _ in
                client.request(Echo.echo, WireKeyValue(key: text), stream: client.nextStream())
            }
            try server.whileHeld { try client.send(requests) }
            for _ in 0..<count {
                #expect(try RawClient.response(client.readFrame(), returning: WireKeyValue.self).key == text)
            }
            #expect(server.server.memory.pressure == .scarce)
        }
    }

    /// A connection that has sent the first part of a frame above a share while memory is short, the text in the frame,
    /// and the rest of the frame.
    private static func beginLongRequest(
        _ server: LoopServer
    ) async throws -> (client: RawClient, text: Text, rest: [UInt8]) {
        let client = try connect(server)
        server.hold(scarce, line: Echo.line)
        let text = Text(String(repeating: "x", count: 4 * share))
        let bytes = client.request(Echo.echo, WireKeyValue(key: text), stream: client.nextStream())
        try client.send(Array(bytes.prefix(2 * share)))
        try await until { server.server.memory.byteCount > scarce + share }
        return (client, text, Array(bytes.dropFirst(2 * share)))
    }

    @Test func `The rest of a long frame waits for memory and is then read`() async throws {
        try await LoopServer.run(limits: Self.limits()) { server in
            let (client, text, rest) = try await Self.beginLongRequest(server)
            try client.send(rest)
            // Another connection is served meanwhile.
            _ = try Self.connect(server)
            server.hold(-Self.scarce, line: Echo.line)
            #expect(try RawClient.response(client.readFrame(), returning: WireKeyValue.self).key == text)
        }
    }

    @Test func `A line that holds little sends a long frame while another line holds most`() async throws {
        try await LoopServer.run(limits: Self.limits()) { server in
            let client = try Self.connect(server)
            server.hold(Self.scarce, line: "another")
            let text = Text(String(repeating: "x", count: 16 * Self.share))
            let answer: WireKeyValue = try client.call(Echo.echo, WireKeyValue(key: text))
            #expect(answer.key == text)
            #expect(server.server.memory.pressure >= .scarce)
            client.close()
            try await until { server.server.memory.byteCount == Self.scarce && server.server.memory.lineCount == 1 }
        }
    }

    /// All loops share the lines, under a lock that not every burst of requests may take.
    @Test func `A connection stays in its line when it holds little again`() async throws {
        try await LoopServer.run(limits: Self.limits()) { server in
            let (client, memory) = (try Self.connect(server), server.server.memory)
            let line = memory.enter(Echo.line)
            let text = Text(String(repeating: "x", count: 1_000))
            let requests = (0..<40).flatMap { _ in
                client.request(Echo.echo, WireKeyValue(key: text), stream: client.nextStream())
            }
            try server.whileHeld { try client.send(requests) }
            for _ in 0..<40 { _ = try client.readFrame() }
            // A buffer that is kept for the next burst is given back after five seconds.
            try await until { memory.byteCount <= Self.share / 4 && line.byteCount == 0 }
            memory.leave(Echo.line)
            #expect(memory.lineCount == 1)
            client.close()
            try await until { memory.lineCount == 0 }
        }
    }

    /// A thousand connections that hold little each would fill the rest.
    @Test func `When memory is nearly used up, a line that holds more than is free begins no call`() async throws {
        try await LoopServer.run(limits: Self.limits()) { server in
            let client = try Self.connect(server)
            server.hold(Self.exhausted, line: Echo.line)
            try client.send(client.request(Echo.echo, WireKeyValue(key: "waits"), stream: client.nextStream()))
            try await until { server.pausedCount == 1 }
            server.hold(-Self.exhausted, line: Echo.line)
            #expect(try RawClient.response(client.readFrame(), returning: WireKeyValue.self).key == "waits")
            #expect(server.pausedCount == 0)
        }
    }

    @Test func `A line that holds little goes on when memory is nearly used up`() async throws {
        try await LoopServer.run(limits: Self.limits()) { server in
            let client = try Self.connect(server)
            server.hold(Self.exhausted, line: "another")
            let answer: WireKeyValue = try client.call(Echo.echo, WireKeyValue(key: "served"))
            #expect(answer.key == "served")
            #expect(server.server.memory.pressure == .exhausted)
        }
    }

    @Test func `While memory is short, connections that hold little count for their line`() async throws {
        var limits = Self.limits()
        limits.connectionMemoryShare = 64 * 1024
        try await LoopServer.run(limits: limits) { server in
            let clients = try (0..<20).map { _ in try Self.connect(server) }
            let memory = server.server.memory
            let line = memory.enter(Echo.line)
            defer { memory.leave(Echo.line) }
            server.hold(Self.scarce, line: "another")
            for client in clients {
                try client.send(client.request(Echo.hold, WireKeyValue(), stream: client.nextStream()))
            }
            // Each call counts as 4 KiB.
            try await until { line.byteCount >= clients.count * 4 * 1024 }
        }
    }

    /// A connection of the line that has sent a request but for its last byte, and that byte.
    private static func beginRequest(
        _ server: LoopServer, line: Text, _ text: Text
    ) throws -> (client: RawClient, lastByte: [UInt8]) {
        let (client, theirs) = try RawClient.pair()
        server.server.adopt(theirs)
        _ = try client.hello()
        let _: WireKeyValue = try client.call(Echo.enter, WireKeyValue(key: line))
        let bytes = client.request(Echo.echo, WireKeyValue(key: text), stream: client.nextStream())
        try client.send(Array(bytes.dropLast()))
        return (client, Array(bytes.suffix(1)))
    }

    /// The connection that holds most for longest is of a line that holds little.
    @Test func `Connections of lines that hold more than is free are closed first`() async throws {
        var limits = Self.limits()
        limits.connectionMemoryMax = 64 << 20
        limits.unreadPatience = .zero
        try await LoopServer.run(limits: limits) { server in
            let memory = server.server.memory
            let text = Text(String(repeating: "x", count: 600 * 1024))
            let calm = try Self.beginRequest(server, line: "calm", text)
            try await until { memory.byteCount > text.byteCount }
            let half = Text(String(repeating: "x", count: 300 * 1024))
            let busy = try (0..<40).map { _ in try Self.beginRequest(server, line: "busy", half) }
            try await until { memory.byteCount > text.byteCount + 40 * half.byteCount }
            server.hold((57 << 20) - memory.byteCount, line: "busy")
            try await until { memory.byteCount <= memory.reliefTarget }
            #expect(server.server.metrics.connectionsClosedForMemory.value > 0)
            try calm.client.send(calm.lastByte)
            #expect(try RawClient.response(calm.client.readFrame(), returning: WireKeyValue.self).key == text)
            for peer in busy { peer.client.close() }
        }
    }

    @Test func `Half a frame meets its limit while memory is short`() async throws {
        try await LoopServer.run(limits: Self.limits(frameTimeout: .milliseconds(300))) { server in
            let (client, _, rest) = try await Self.beginLongRequest(server)
            try client.send(rest)
            // The connection looks for memory several times in the meantime, and that puts nothing off.
            let frames = try client.readUntilClosed()
            #expect(frames.map(\.header.type) == [.goAway])
            try await until { server.server.memory.byteCount == Self.scarce }
        }
    }
}
