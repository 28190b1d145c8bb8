import Base
import Messages
import PosternClient
import Reactor
import TLS
import TestSupport
import Testing
import Transport
import Wire

/// Channels over TLS: they speak to the server whose certificate they trust, and to nobody else.
@Suite struct ChannelTLSTests {
    /// Answers every request with its own payload.
    private final class Echo: Dispatcher {
        func makeConnectionContext() -> AnyObject { self }
        func authenticate(_ authorization: Text, on connection: isolated Connection) {}
        func handle(
            _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection
        ) {
            connection.authenticated(line: "tests")
            let payload = [UInt8](request.payload)
            connection.respond(stream: stream, metadata: OutgoingMetadata()) { $0.append(contentsOf: payload) }
        }
    }

    private static func withServer(
        _ body: (_ port: UInt16, _ tls: ServerTLS, _ certificates: TestCertificates) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let certificates = try TestCertificates(in: directory)
            let settings = ServerTLS.Settings(
                certificateFile: certificates.certificateFile, keyFile: certificates.keyFile)
            let tls = try ServerTLS(settings, limits: Limits(), log: .silent)
            let loops = EventLoopGroup(count: 1, name: "tls")
            let server = Server(loops: loops, dispatcher: Echo(), limits: Limits(), log: .silent, software: "test/1")
            loops.start()
            guard let wanted = SocketAddress(host: "127.0.0.1", port: 0) else { preconditionFailure("no loopback") }
            let listener = try server.listen(wanted, tls: tls)
            listener.start()
            let outcome: Result<Void, any Error>
            do {
                outcome = .success(try await body(listener.address.port, tls, certificates))
            } catch { outcome = .failure(error) }
            listener.close()
            await server.closeAll()
            end(loops)
            try outcome.get()
        }
    }

    private static func end(_ loops: EventLoopGroup) {
        loops.stop()
        loops.join()
    }

    private static func channel(_ address: String, _ tls: TLSOptions?) throws -> Channel {
        var options = ChannelOptions()
        options.tls = tls
        return try Channel(address: address, credentials: .none, options: options)
    }

    private static func ask(_ channel: Channel, _ text: String) async throws(Failure) -> Text {
        let answer: WireKeyValue = try await channel.unary(
            "test.Service", "Echo", WireKeyValue(key: Text(text)), idempotent: true)
        return answer.key
    }

    @Test func `Calls of every size go over TLS`() async throws {
        try await Self.withServer { port, tls, certificates in
            let channel = try Self.channel("127.0.0.1:\(port)", TLSOptions(caFile: certificates.authorityFile))
            for size in [1, 1_000, 20_000, 60_000] {
                let text = String(repeating: "x", count: size)
                #expect(try await Self.ask(channel, text) == Text(text))
            }
            await channel.shutdown()
            #expect(tls.metrics.handshakes.value == 1)
        }
    }

    @Test func `A server is known by the name that the client says`() async throws {
        try await Self.withServer { port, _, certificates in
            for (name, isGood) in [("localhost", true), ("127.0.0.1", true), ("other", false), ("127.0.0.2", false)] {
                let tls = TLSOptions(caFile: certificates.authorityFile, serverName: name)
                let channel = try Self.channel("127.0.0.1:\(port)", tls)
                let outcome: String
                do throws(Failure) { outcome = try await Self.ask(channel, "a").string } catch {
                    outcome = error.message
                }
                #expect(isGood ? outcome == "a" : outcome.contains("mismatch"), "\(name): \(outcome)")
                await channel.shutdown()
            }
        }
    }

    @Test func `What is not trusted, or cannot be read, fails with the reason`() async throws {
        try await Self.withServer { port, _, certificates in
            let other = "\(certificates.directory)/other.pem"
            writeFile(other, try CertificateMaker.authority(commonName: "other", days: 1).certificatePEM)
            let cases: [(TLSOptions?, String)] = [
                (TLSOptions(caFile: other), "certificate was refused"),
                (TLSOptions(), "certificate was refused"),
                (TLSOptions(caFile: "\(certificates.directory)/none"), "No such file"),
                (TLSOptions(caFile: certificates.keyFile), "no certificate"),
                (TLSOptions(caFile: certificates.authorityFile, keyFile: certificates.keyFile), "open"),
            ]
            for (tls, reason) in cases {
                let channel = try Self.channel("127.0.0.1:\(port)", tls)
                do throws(Failure) {
                    _ = try await Self.ask(channel, "a")
                    Issue.record("no failure: \(reason)")
                } catch { #expect(error.message.contains(reason), "\(error.message)") }
                await channel.shutdown()
            }
        }
    }

    @Test func `A renewed authority is trusted at the next connection`() async throws {
        try await Self.withServer { port, _, certificates in
            let file = "\(certificates.directory)/trusted.pem"
            writeFile(file, try CertificateMaker.authority(commonName: "other", days: 1).certificatePEM)
            var options = ChannelOptions()
            options.tls = TLSOptions(caFile: file)
            options.waitsForConnection = true
            let channel = try Channel(address: "127.0.0.1:\(port)", credentials: .none, options: options)
            writeFile(file, certificates.authority.certificatePEM)
            #expect(try await Self.ask(channel, "a") == "a")
            await channel.shutdown()
        }
    }
}
