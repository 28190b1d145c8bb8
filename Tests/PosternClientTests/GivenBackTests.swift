import Base
import Messages
import PosternClient
import Testing
import Wire

/// Calls that the server gives back, at the very moment at which something else happens to them. The loop of the
/// channel is held up meanwhile, so that it finds both at once.
@Suite(.timeLimit(.minutes(1))) struct GivenBackTests {
    /// Runs `body` while the only thread of `loops` stands still.
    private static func holding(_ loops: ChannelLoops, _ body: () async -> Void) async throws {
        let (isHeld, gate) = (Promise<Void>(), Semaphore())
        let transport = ChannelTransport(name: "hold") { () throws(Failure) in
            isHeld.succeed(())
            gate.wait()
            throw Failure(.connectionFailed, "The loop was held up.")
        }
        var options = ChannelOptions()
        options.loops = loops
        let channel = try Channel(transport: transport, credentials: .none, options: options)
        let call = Task { _ = try? await callNumbered(0, on: channel) }
        try await isHeld.value()
        await body()
        gate.signal()
        await call.value
        await channel.shutdown()
    }

    private static func reason(_ options: CallOptions, on channel: Channel) -> Task<String, Never> {
        Task {
            do throws(Failure) {
                return try await callNumbered(1, on: channel, options: options).string
            } catch {
                return error.reason
            }
        }
    }

    /// A server that gives back its first call with `frame`, when it is told to.
    private static func server(
        received: Promise<Void>, go: Semaphore, given: Promise<Void>,
        _ frame: @escaping @Sendable (UInt32) -> ControlFrame
    ) -> ScriptedServer {
        ScriptedServer { peer, _ in
            peer.greet()
            guard let request = peer.receiveRequest() else { return }
            received.succeed(())
            go.wait()
            peer.send { frame(request.stream).append(to: &$0) }
            given.succeed(())
            while peer.receive() != nil {}
        }
    }

    @Test func `A call that is given back while the channel is shut down fails`() async throws {
        let (received, go, given) = (Promise<Void>(), Semaphore(), Promise<Void>())
        let server = Self.server(received: received, go: go, given: given) { .cancel(stream: $0, .refused) }
        var options = ChannelOptions()
        options.loops = ChannelLoops(threadCount: 1)
        let channel = try Channel(address: server.address, credentials: .none, options: options)
        let reason = Self.reason(CallOptions(), on: channel)
        try await received.value()
        try await Self.holding(options.loops) {
            go.signal()
            try? await given.value()
            // The second shutdown returns at once. The first one is under way by then.
            let isUnderWay = Promise<Void>()
            for _ in 0..<2 {
                Task {
                    await channel.shutdown()
                    isUnderWay.succeed(())
                }
            }
            try? await isUnderWay.value()
            try? await Task.sleep(for: .milliseconds(100))
        }
        #expect(await reason.value == "CHANNEL_CLOSED")
        server.stop()
    }

    @Test func `A call that is given back when its deadline passes ends at its deadline`() async throws {
        let (received, go, given) = (Promise<Void>(), Semaphore(), Promise<Void>())
        let server = Self.server(received: received, go: go, given: given) { _ in .goAway(lastStream: 0, .shutdown) }
        var options = ChannelOptions()
        options.loops = ChannelLoops(threadCount: 1)
        let channel = try Channel(address: server.address, credentials: .none, options: options)
        let timeout = Duration.seconds(1)
        let reason = Self.reason(CallOptions(timeout: timeout, waitsForConnection: true), on: channel)
        try await received.value()
        try await Self.holding(options.loops) {
            server.stopListening()
            go.signal()
            try? await given.value()
            try? await Task.sleep(for: timeout)
        }
        #expect(await reason.value == "DEADLINE_EXCEEDED")
        await channel.shutdown()
        server.stop()
    }
}
