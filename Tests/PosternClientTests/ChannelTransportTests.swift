import Base
import PosternClient
import TestSupport
import Testing

/// Channels whose connections are made by the application: here to a server in the same process, without a port.
@Suite(.timeLimit(.minutes(1))) struct ChannelTransportTests {
    @Test func `A channel calls a server in the same process without a network`() async throws {
        try await NamedServer.with("a") { server in
            let transport = ChannelTransport(name: "in-process") { () throws(Failure) in try server.makeConnection() }
            let channel = try Channel(transport: transport, credentials: .none)
            for _ in 0..<10 { #expect(try await askName(channel) == "a") }
            #expect(server.connectionCount == 1)
            let held = Task { try await askName(channel, method: "Hold") }
            try await server.waitUntilHolding()
            await server.kill()
            let failure = await #expect(throws: Failure.self) { try await held.value }
            #expect(failure?.reason == "CONNECTION_LOST")
            await channel.shutdown()
        }
    }

    @Test func `What a transport throws, or returns by mistake, fails the calls`() async throws {
        let broken = ChannelTransport(name: "broken") { () throws(Failure) in
            throw Failure(.connectionFailed, "The tunnel is down.")
        }
        let channel = try Channel(transport: broken, credentials: .none)
        let failure = await #expect(throws: Failure.self) { try await askName(channel) }
        #expect(failure?.reason == "CONNECTION_FAILED")
        #expect(failure?.message == "Cannot reach broken: The tunnel is down.")
        await channel.shutdown()

        let wrong = try Channel(
            transport: ChannelTransport(name: "wrong") { () throws(Failure) in -1 }, credentials: .none)
        let refused = await #expect(throws: Failure.self) { try await askName(wrong) }
        #expect(refused?.reason == "CONNECTION_FAILED")
        await wrong.shutdown()
    }
}
