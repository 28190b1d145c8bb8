import Base
import Glibc
import Messages
import PosternClient
import Reactor
import Synchronization
import TestSupport
import Transport
import Wire

/// A server of the real transport that answers with its name. Calls of the method `Hold` are answered when the test
/// says so.
final class NamedServer: Sendable {
    private final class Names: Dispatcher {
        let name: Text
        let held = Mutex<[@Sendable () -> Void]>([])
        let isHolding = Promise<Void>()

        init(_ name: Text) { self.name = name }

        func makeConnectionContext() -> AnyObject { self }
        func authenticate(_ authorization: Text, on connection: isolated Connection) {}
        func handle(
            _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection
        ) {
            connection.authenticated(line: "tests")
            guard Text(validating: [UInt8](request.method)) == "Hold" else { return answer(stream, on: connection) }
            held.withLock { held in
                held.append { [self] in Task { await answer(stream, on: connection) } }
            }
            isHolding.succeed(())
        }

        private func answer(_ stream: UInt32, on connection: isolated Connection) {
            let answer = ProjectServerInfoResponse(version: name)
            connection.respond(stream: stream, metadata: OutgoingMetadata()) { answer.encode(into: &$0) }
        }
    }

    let port: UInt16
    private let names: Names
    private let loops: EventLoopGroup
    private let server: Server
    private let listener: Listener

    var address: String { "127.0.0.1:\(port)" }

    private init(_ name: Text, host: String, port: UInt16) throws {
        names = Names(name)
        loops = EventLoopGroup(count: 1, name: "named")
        var limits = Limits()
        limits.drainTimeout = .seconds(20)
        // All connections count as unauthenticated until their first call.
        limits.connectionsUnauthenticatedPerAddressMax = 10_000
        server = Server(loops: loops, dispatcher: names, limits: limits, log: .silent, software: "test/1")
        loops.start()
        guard let wanted = SocketAddress(host: host, port: port) else { preconditionFailure("no loopback") }
        listener = try server.listen(wanted)
        listener.start()
        self.port = listener.address.port
    }

    /// Port 0: any that is free.
    static func with(
        _ name: Text, host: String = "127.0.0.1", port: UInt16 = 0, _ body: (NamedServer) async throws -> Void
    ) async throws {
        let server = try NamedServer(name, host: host, port: port)
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(server)) } catch { outcome = .failure(error) }
        await server.kill()
        server.end()
        try outcome.get()
    }

    private func end() {
        loops.stop()
        loops.join()
    }

    /// The number of open connections. A client's end is seen a moment later.
    var connectionCount: Int64 { server.metrics.connectionsOpen.value }

    /// A connection without TCP: the client's end of a socket pair.
    func makeConnection() throws(Failure) -> Int32 {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else {
            throw Failure(.connectionFailed, "socketpair failed with \(errno)")
        }
        _ = fcntl(ends[1], F_SETFL, fcntl(ends[1], F_GETFL) | O_NONBLOCK)
        server.adopt(ends[1])
        return ends[0]
    }

    /// Accepts no more connections, and cuts those that are there.
    func kill() async {
        listener.close()
        await server.closeAll()
    }

    /// Drains, as a server does that is asked to stop.
    func drain() async {
        listener.close()
        await server.drain()
    }

    /// Returns when a call of `Hold` has arrived.
    func waitUntilHolding() async throws { try await names.isHolding.value() }

    func release() {
        let held = names.held.withLock { held in
            defer { held = [] }
            return held
        }
        for answer in held { answer() }
    }
}

/// The name of the server that answers.
func askName(
    _ channel: Channel, method: String = "Name", idempotent: Bool = false, options: CallOptions = .init()
) async throws(Failure) -> Text {
    let answer: ProjectServerInfoResponse = try await channel.unary(
        "test.Names", method, ProjectServerInfoRequest(), idempotent: idempotent, options: options)
    return answer.version
}
