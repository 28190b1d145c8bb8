import Base
import Messages
import PosternClient
import TestSupport
import Testing
import Wire

/// What a server can do to a channel that calls it.
@Suite(.timeLimit(.minutes(1))) struct HostileServerTests {
    @Test func `A server that sends PINGs and never reads the answers loses the connection`() async throws {
        let isClosedByClient = Recording<Bool>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            guard peer.receiveRequest() != nil else { return }
            var pings = ByteBuffer()
            for number in UInt64(0)..<4_000 { ControlFrame.ping(number, ack: false).append(to: &pings) }
            let bytes = [UInt8](pings.readable)
            // More than the sockets of both sides hold, many times over.
            for _ in 0..<600 { peer.send { $0.append(contentsOf: bytes) } }
            while peer.receive() != nil {}
            isClosedByClient.append(peer.isClosedByClient)
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let failure = await #expect(throws: Failure.self) { try await callNumbered(1, on: channel) }
        #expect(failure?.reason == "CONNECTION_LOST")
        await channel.shutdown()
        server.stop()
        #expect(Set(isClosedByClient.elements) == [true])
    }

    @Test func `A server whose HELLO cannot be read is left alone for the channel's pause`() async throws {
        let connections = Recording<Int>()
        let server = ScriptedServer { peer, connection in
            connections.append(connection)
            _ = peer.receive()
            peer.send { $0.appendHello(WireHello(protocolVersion: 0)) }
            while peer.receive() != nil {}
        }
        var options = ChannelOptions()
        options.reconnect.firstDelay = .minutes(10)
        let channel = try Channel(address: server.address, credentials: .none, options: options)
        let failure = await #expect(throws: Failure.self) {
            try await callNumbered(1, on: channel, options: CallOptions(timeout: .seconds(1), waitsForConnection: true))
        }
        #expect(failure?.reason == "CONNECTION_FAILED")
        await channel.shutdown()
        server.stop()
        #expect(connections.elements.count <= 1)
    }

    @Test func `A call that finds no connection was not sent, also where a proxy accepts and hangs up`() async throws {
        let server = ScriptedServer { _, _ in }
        var options = ChannelOptions()
        options.reconnect.firstDelay = .minutes(10)
        let channel = try Channel(address: server.address, credentials: .none, options: options)
        // The first call is sent before the server has answered anything.
        let first = await #expect(throws: Failure.self) { try await callNumbered(1, on: channel) }
        #expect(first?.reason == "CONNECTION_LOST")
        let second = await #expect(throws: Failure.self) { try await callNumbered(2, on: channel) }
        #expect(second?.reason == "CONNECTION_FAILED")
        await channel.shutdown()
        server.stop()
    }

    @Test func `A call that the server did not take is sent once more, also where no call is repeated`() async throws {
        let attempts = Recording<Text>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            while let request = peer.receiveRequest() {
                let name = (try? TenantsGetRequest(decoding: request.request.payload))?.tenantID ?? ""
                attempts.append(name)
                if name == "call-1", attempts.elements.count == 2 {
                    peer.echo(request)
                } else {
                    peer.send { ControlFrame.cancel(stream: request.stream, .refused).append(to: &$0) }
                }
            }
        }
        var options = ChannelOptions()
        options.retry.attemptsMax = 1
        let channel = try Channel(address: server.address, credentials: .none, options: options)
        #expect(try await callNumbered(1, on: channel) == "call-1")
        let failure = await #expect(throws: Failure.self) { try await callNumbered(2, on: channel) }
        #expect(failure?.reason == "REFUSED")
        await channel.shutdown()
        server.stop()
        #expect(attempts.elements == ["call-1", "call-1", "call-2", "call-2"])
    }
}
