import Base
import Messages
import PosternClient
import TestSupport
import Testing
import Wire

/// Channels with several servers, of which some are gone, leave, or do not answer.
@Suite(.timeLimit(.minutes(2))) struct ChannelServersTests {
    private static func channel(
        _ addresses: [String], _ policy: LoadBalancingPolicy = .pickFirst,
        configure: (inout ChannelOptions) -> Void = { _ in }
    ) throws -> Channel {
        var options = ChannelOptions()
        options.loadBalancing = policy
        options.reconnect.firstDelay = .milliseconds(20)
        options.reconnect.delayMax = .milliseconds(100)
        configure(&options)
        return try Channel(address: addresses.joined(separator: ","), credentials: .none, options: options)
    }

    /// Calls until the server `name` has answered, 10,000 times at most.
    private static func callUntil(_ name: Text, answersOn channel: Channel) async throws {
        for _ in 0..<10_000 {
            if try await askName(channel, idempotent: true) == name { return }
            await Task.yield()
        }
        Issue.record("\(name) never answered")
    }

    @Test func `Pick first uses one server until that is gone, and stays with the next`() async throws {
        try await NamedServer.with("a") { first in
            try await NamedServer.with("b") { second in
                let channel = try Self.channel([first.address, second.address])
                for _ in 0..<10 { #expect(try await askName(channel) == "a") }
                await first.kill()
                #expect(try await askName(channel, idempotent: true) == "b")
                try await NamedServer.with("a again", port: first.port) { _ in
                    for _ in 0..<10 {
                        let name = try await askName(channel)
                        #expect(name == "b")
                    }
                }
                await channel.shutdown()
            }
        }
    }

    @Test func `Round robin spreads calls evenly over the servers that are there`() async throws {
        try await NamedServer.with("a") { first in
            try await NamedServer.with("b") { second in
                let none = try freePort()
                let channel = try Self.channel(
                    [first.address, "127.0.0.1:\(none)", second.address], .roundRobin)
                try await Self.callUntil("a", answersOn: channel)
                try await Self.callUntil("b", answersOn: channel)
                var counts: [Text: Int] = [:]
                for _ in 0..<100 { counts[try await askName(channel), default: 0] += 1 }
                #expect(counts == ["a": 50, "b": 50])
                await channel.shutdown()
            }
        }
    }

    @Test func `Round robin goes on without a server that was killed, and takes it back`() async throws {
        try await NamedServer.with("a") { first in
            try await NamedServer.with("b") { second in
                let channel = try Self.channel([first.address, second.address], .roundRobin)
                try await Self.callUntil("a", answersOn: channel)
                try await Self.callUntil("b", answersOn: channel)
                await first.kill()
                for _ in 0..<20 { #expect(try await askName(channel, idempotent: true) == "b") }
                try await NamedServer.with("a again", port: first.port) { _ in
                    try await Self.callUntil("a again", answersOn: channel)
                }
                await channel.shutdown()
            }
        }
    }

    @Test(arguments: [LoadBalancingPolicy.pickFirst, .roundRobin])
    func `A server that is stopped loses no call`(policy: LoadBalancingPolicy) async throws {
        try await NamedServer.with("a") { first in
            try await NamedServer.with("b") { second in
                let channel = try Self.channel([first.address, second.address], policy)
                try await Self.callUntil("a", answersOn: channel)
                if policy == .roundRobin { try await Self.callUntil("b", answersOn: channel) }
                // Round robin gives one of two calls to each server.
                let heldCount = policy == .roundRobin ? 2 : 1
                let held = (0..<heldCount).map { _ in Task { try await askName(channel, method: "Hold") } }
                try await first.waitUntilHolding()
                if policy == .roundRobin { try await second.waitUntilHolding() }
                let draining = Task { await first.drain() }
                // None of these calls may be repeated.
                for _ in 0..<1_000 { _ = try await askName(channel) }
                try await Self.callUntil("b", answersOn: channel)
                first.release()
                second.release()
                var names: Set<Text> = []
                for task in held { names.insert(try await task.value) }
                #expect(names.contains("a"))
                await draining.value
                #expect(try await askName(channel) == "b")
                await channel.shutdown()
            }
        }
    }

    @Test func `Calls pass over servers that accept and never answer, that hang up, and that are not there`()
        async throws
    {
        let mute = ScriptedServer { peer, _ in while peer.receive() != nil {} }
        let rude = ScriptedServer { _, _ in }
        let none = try freePort()
        for policy in [LoadBalancingPolicy.pickFirst, .roundRobin] {
            try await NamedServer.with("a") { server in
                let addresses = [mute.address, rude.address, "127.0.0.1:\(none)", server.address]
                let channel = try Self.channel(addresses, policy) { $0.connectTimeout = .seconds(2) }
                // No call was sent to a server that did not answer it: none of these calls may be repeated.
                for _ in 0..<20 { #expect(try await askName(channel) == "a") }
                await channel.shutdown()
            }
        }
        mute.stop()
        rude.stop()
    }

    @Test func `A server that falls silent is found by PING, and only repeatable calls go to the next`() async throws {
        let isClosedByClient = Recording<Bool>()
        let silent = ScriptedServer { peer, _ in
            peer.greet()
            while peer.receive() != nil {}
            isClosedByClient.append(peer.isClosedByClient)
        }
        try await NamedServer.with("b") { server in
            for isRepeatable in [false, true] {
                // The server that answers needs some time, too.
                let channel = try Self.channel([silent.address, server.address]) {
                    $0.keepalive = .milliseconds(20)
                    $0.keepaliveTimeout = .seconds(2)
                }
                if isRepeatable {
                    #expect(try await askName(channel, idempotent: true) == "b")
                } else {
                    let failure = await #expect(throws: Failure.self) { try await askName(channel) }
                    #expect(failure?.reason == "CONNECTION_LOST")
                    #expect(try await askName(channel) == "b")
                }
                await channel.shutdown()
            }
        }
        silent.stop()
        #expect(Set(isClosedByClient.elements) == [true])
    }

    @Test func `A dead connection without calls is found when the channel is asked to`() async throws {
        let hungUp = Promise<Bool>()
        let silent = ScriptedServer { peer, _ in
            peer.greet()
            guard let request = peer.receiveRequest() else { return }
            peer.respond(request.stream, ProjectServerInfoResponse(version: "silent"))
            while peer.receive() != nil {}
            hungUp.succeed(peer.isClosedByClient)
        }
        let channel = try Self.channel([silent.address]) {
            $0.keepalive = .milliseconds(20)
            $0.keepaliveTimeout = .seconds(2)
            $0.keepaliveWithoutCalls = true
        }
        #expect(try await askName(channel) == "silent")
        #expect(try await hungUp.value())
        await channel.shutdown()
        silent.stop()
    }

    @Test func `A single server that never answers HELLO is given up`() async throws {
        let mute = ScriptedServer { peer, _ in while peer.receive() != nil {} }
        let channel = try Self.channel([mute.address]) { $0.connectTimeout = .milliseconds(50) }
        let sent = await #expect(throws: Failure.self) { try await askName(channel) }
        #expect(sent?.reason == "CONNECTION_LOST")
        await channel.shutdown()
        mute.stop()
    }

    @Test func `When all servers are gone, calls fail at once and say so`() async throws {
        let ports = [try freePort(), try freePort()]
        let channel = try Self.channel(ports.map { "127.0.0.1:\($0)" }) { $0.reconnect.firstDelay = .seconds(60) }
        let failure = await #expect(throws: Failure.self) { try await askName(channel, idempotent: true) }
        #expect(failure?.reason == "CONNECTION_FAILED")
        #expect(failure?.message.contains("of 2 servers") == true)
        #expect((failure?.retryAfter ?? .zero) > .zero)
        await channel.shutdown()
    }

    @Test func `The name localhost also stands for the loopback address of IPv6`() async throws {
        try await NamedServer.with("a", host: "::1") { server in
            let channel = try Self.channel(["localhost:\(server.port)"])
            #expect(try await askName(channel) == "a")
            await channel.shutdown()
        }
    }

    @Test func `A name is looked up on another thread, and its addresses are tried in turn`() async throws {
        try await NamedServer.with("a") { server in
            let channel = try Self.channel(["localhost:\(server.port)"])
            #expect(try await askName(channel) == "a")
            await channel.shutdown()
        }
        let nowhere = try Self.channel(["no-such-host.invalid:7400"]) { $0.reconnect.firstDelay = .seconds(60) }
        let failure = await #expect(throws: Failure.self) { try await askName(nowhere) }
        #expect(failure?.reason == "CONNECTION_FAILED")
        await nowhere.shutdown()
    }
}
