import Base
import Glibc
import Messages
import TestSupport
import Testing
import Wire

@testable import Transport

/// How the two ends of a connection are joined.
enum Join: CaseIterable { case tcp, socketPair }

@Suite struct TransportServerTests {
    private func withEcho(
        _ limits: Limits = Limits(), _ body: (Server, (Join) throws -> RawClient) async throws -> Void
    ) async throws {
        try await LoopServer.run(limits: limits, loops: 2) { adopting in
            let server = adopting.server
            let listener = try server.listen(#require(SocketAddress("127.0.0.1:0")))
            listener.start()
            defer { listener.close() }
            try await body(server) { join in
                switch join {
                case .tcp: return try RawClient(port: listener.address.port)
                case .socketPair:
                    let (ours, theirs) = try RawClient.pair()
                    server.adopt(theirs)
                    return ours
                }
            }
        }
    }

    private static func ask(_ client: RawClient, _ method: String, _ text: Text) throws -> Text {
        let answer: WireKeyValue = try client.call(method, WireKeyValue(key: text))
        return answer.key
    }

    @Test(arguments: Join.allCases) func aRequestIsAnsweredHoweverTheEndsAreJoined(_ join: Join) async throws {
        try await withEcho { _, connect in
            let client = try connect(join)
            for index in 0..<100 { #expect(try Self.ask(client, Echo.echo, Text("\(index)")) == Text("\(index)")) }
        }
    }

    @Test(arguments: Join.allCases) func aFrameMayComeByteByByte(_ join: Join) async throws {
        try await withEcho { _, connect in
            let client = try connect(join)
            for byte in client.request(Echo.echo, WireKeyValue(key: "slow"), stream: client.nextStream()) {
                try client.send([byte])
            }
            #expect(try RawClient.response(client.readFrame(), returning: WireKeyValue.self).key == "slow")
        }
    }

    @Test(arguments: Join.allCases) func `A client of HTTP/1 is told of its mistake`(_ join: Join) async throws {
        try await withEcho { server, connect in
            let browser = try connect(join)
            try browser.send(Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            let answer = String(decoding: try browser.receive(4_096), as: UTF8.self)
            #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n") && answer.hasSuffix("or the HTTP port.\n"))
            #expect(try browser.receive(1).isEmpty)
            let stranger = try connect(join)
            try stranger.send([0x16, 0x03, 0x01])
            #expect(try stranger.readUntilClosed().isEmpty)
            #expect(server.metrics.connectionsUnknown.value == 2)
        }
    }

    @Test(arguments: Join.allCases) func aPeerThatSendsNoMoreIsStillAnswered(_ join: Join) async throws {
        try await withEcho { _, connect in
            let client = try connect(join)
            try client.send(client.request(Echo.echo, WireKeyValue(key: "last"), stream: client.nextStream()))
            client.closeForWriting()
            let frames = try client.readUntilClosed()
            #expect(try frames.map { try RawClient.response($0, returning: WireKeyValue.self).key } == ["last"])
        }
    }

    @Test(arguments: Join.allCases) func aConnectionAboveTheLimitIsClosedAtOnce(_ join: Join) async throws {
        var limits = Limits()
        limits.connectionsMax = 2
        try await withEcho(limits) { server, connect in
            let first = try connect(join)
            let second = try connect(join)
            #expect(try Self.ask(first, Echo.echo, "a") == "a")
            #expect(try Self.ask(second, Echo.echo, "b") == "b")
            let third = try connect(join)
            #expect(try third.readUntilClosed().isEmpty)
            #expect(server.metrics.connectionsRefused.value == 1)
            #expect(try Self.ask(first, Echo.echo, "c") == "c")
        }
    }

    /// The server has more connections than one turn of a loop visits.
    @Test func aPassOverAllConnectionsHasEndedWhenItReturns() async throws {
        var limits = Limits()
        limits.connectionsUnauthenticatedPerAddressMax = 300
        try await withEcho(limits) { server, connect in
            let clients = try (0..<300).map { _ in try connect(.socketPair) }
            for pass in 1...5 {
                let visited = Counter()
                await server.visitConnections { _ in visited.add() }
                #expect(visited.value == 300, "pass \(pass)")
            }
            #expect(clients.count == 300)
        }
    }

    @Test func oneAddressCannotTakeEveryPlace() async throws {
        var limits = Limits()
        limits.connectionsPerAddressMax = 1
        try await withEcho(limits) { _, connect in
            let first = try connect(.tcp)
            #expect(try Self.ask(first, Echo.echo, "a") == "a")
            #expect(try connect(.tcp).readUntilClosed().isEmpty)
            // A socket pair has another address: none.
            #expect(try Self.ask(connect(.socketPair), Echo.echo, "b") == "b")
        }
    }

    @Test func theEndOfAConnectionCancelsItsCalls() async throws {
        var limits = Limits()
        limits.connectionsMax = 1
        try await withEcho(limits) { _, connect in
            let client = try connect(.tcp)
            try client.send(client.request(Echo.hold, WireKeyValue(), stream: client.nextStream()))
            client.reset()
            // The place is free once the held call has ended.
            var answer: Text?
            try await until("the next client is served") {
                answer = try? Self.ask(connect(.tcp), Echo.echo, "next")
                return answer != nil
            }
            #expect(answer == "next")
        }
    }

    @Test func afterDrainingNobodyIsServed() async throws {
        try await withEcho { server, connect in
            let client = try connect(.tcp)
            #expect(try Self.ask(client, Echo.echo, "a") == "a")
            await server.drain()
            _ = try client.readUntilClosed()
            #expect(try connect(.socketPair).readUntilClosed().isEmpty)
        }
    }

    /// The first loop is held up while the server begins to stop.
    @Test func aStopTellsTheClientsOfOneLoopHoweverBusyAnotherIs() async throws {
        try await LoopServer.run(loops: 2) { adopting in
            let server = adopting.server
            // The loops get every other connection.
            let clients = try (0..<20).map { _ in
                let (ours, theirs) = try RawClient.pair()
                server.adopt(theirs)
                _ = try ours.hello()
                return ours
            }
            var draining: Task<Void, Never>?
            try adopting.whileHeld {
                draining = Task { await server.drain() }
                for index in stride(from: 1, to: clients.count, by: 2) {
                    let told = try clients[index].readFrame()
                    #expect(told.header.type == .goAway)
                }
            }
            await draining?.value
            for client in clients { #expect(try client.readUntilClosed().last?.header.type == .goAway) }
        }
    }

    @Test func aPortInUseIsRefusedWithAHint() async throws {
        try await withEcho { server, _ in
            let taken = try server.listen(#require(SocketAddress("127.0.0.1:0")))
            let error = #expect(throws: ListenError.self) { try server.listen(taken.address) }
            #expect(error?.code == EADDRINUSE)
            #expect(error?.description.contains("another program uses it") == true)
            taken.close()
        }
    }

    @Test func acceptedSocketsFindOutAboutVanishedPeers() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        Socket.configure(descriptor)
        func option(_ level: Int32, _ name: Int32) -> Int32 {
            var value: Int32 = -1
            var length = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(descriptor, level, name, &value, &length)
            return value
        }
        #expect(option(SOL_SOCKET, SO_KEEPALIVE) == 1)
        // Two minutes: the first probe after 60 s, then four at 15 s.
        #expect(option(Int32(IPPROTO_TCP), TCP_KEEPIDLE) == 60)
        #expect(option(Int32(IPPROTO_TCP), TCP_KEEPINTVL) == 15)
        #expect(option(Int32(IPPROTO_TCP), TCP_KEEPCNT) == 4)
        #expect(option(Int32(IPPROTO_TCP), TCP_NODELAY) != 0)
    }
}
