import Base
import Messages
import TestSupport
import Testing
import Wire

@testable import PosternClient

/// A connection that dies without a word, and calls over it that may be repeated.
@Suite(.timeLimit(.minutes(1))) struct DeadConnectionTests {
    @Test func `A call over a dead connection is repeated long before keepalive would find it`() async throws {
        let server = ScriptedServer { peer, connection in
            peer.greet()
            guard let first = peer.receiveRequest() else { return }
            peer.echo(first)
            while let frame = peer.receive() {
                if connection > 0, frame.type == .request { peer.echo(frame) }
            }
        }
        var options = ChannelOptions()
        options.keepalive = .hours(1)
        options.keepaliveTimeout = .hours(1)
        options.timeout = .seconds(3)
        let channel = try Channel(address: server.address, credentials: .none, options: options)
        #expect(try await callNumbered(1, on: channel, options: CallOptions(timeout: .seconds(50))) == "call-1")
        let repeated = CallOptions(timeout: .seconds(50))
        #expect(try await callNumbered(2, on: channel, idempotent: true, options: repeated) == "call-2")
        await channel.shutdown()
        server.stop()
    }

    @Test(arguments: [(.seconds(30), .seconds(10)), (.milliseconds(20), .seconds(1))] as [(Duration, Duration)])
    func `A dead connection is found within two thirds of the timeout`(timeout: Duration, patience: Duration) {
        var options = ChannelOptions()
        options.timeout = timeout
        #expect(options.callPatience == patience)
    }

    @Test(arguments: [[UInt8](), Array(repeating: 7, count: 16)])
    func `A refresh that is sent again has the same attempt`(chosen: [UInt8]) async throws {
        let attempts = Recording<[UInt8]>()
        let server = ScriptedServer { peer, connection in
            peer.greet()
            guard let frame = peer.receiveRequest() else { return }
            attempts.append((try? TokensRefreshRequest(decoding: frame.request.payload).attemptID) ?? [])
            // The first connection breaks before the answer.
            if connection > 0 { peer.respond(frame.stream, TokensRefreshResponse(uid: "ada")) }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let request = TokensRefreshRequest(refreshToken: "r1.x", attemptID: chosen)
        let answer = try await TokensClient(channel: channel).refresh(request)
        #expect(answer.uid == "ada")
        await channel.shutdown()
        server.stop()
        let sent = attempts.elements
        #expect(sent.count == 2 && sent.first == sent.last)
        #expect(sent.first?.count == 16)
        #expect(chosen.isEmpty || sent.first == chosen)
    }
}
