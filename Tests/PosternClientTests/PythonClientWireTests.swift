import Base
import Glibc
import Messages
import TestSupport
import Testing
import Wire

/// What the example client in Python does with frames that a real server rarely sends, against scripted servers.
@Suite(.timeLimit(.minutes(2))) struct PythonClientWireTests {
    private struct Outcome {
        let status: Int32?
        let lines: [String]
    }

    private static func watchRevocations(_ server: ScriptedServer, in directory: String) throws -> ChildProcess {
        writeFile("\(directory)/key", [UInt8]("pk_some_key\n".utf8))
        return try ChildProcess.pythonClient(
            server.address, keyIn: "\(directory)/key", ["--tenant", "acme", "watch-revocations"],
            output: "\(directory)/output")
    }

    private static func watchRevocations(_ server: ScriptedServer) throws -> Outcome {
        try withTemporaryDirectory { directory in
            let status = try watchRevocations(server, in: directory).wait(seconds: 60)
            return Outcome(status: status, lines: ChildProcess.lines(in: "\(directory)/output"))
        }
    }

    @Test func `HELLO comes first, then the request with its key and without a deadline`() throws {
        let hellos = Recording<WireHello?>()
        let requests = Recording<ScriptedPeer.Frame?>()
        let server = ScriptedServer { peer, _ in
            hellos.append(peer.greet())
            let request = peer.receive()
            requests.append(request)
            peer.send { $0.appendDataEnd(stream: request?.stream ?? 1) }
        }
        let outcome = try Self.watchRevocations(server)
        server.stop()
        #expect(outcome.status == 0 && outcome.lines.isEmpty)
        let hello = try #require(hellos.elements.first ?? nil)
        #expect(hello == WireHello(protocolVersion: 1, initialWindow: 65_536, software: "postern_client.py"))
        let request = try #require(requests.elements.first ?? nil)
        #expect(request.type == .request && request.stream == 1 && request.header.flags == .remoteClosed)
        #expect(request.request.service == "postern.v1.Tokens" && request.request.method == "WatchRevocations")
        #expect(request.request.timeoutNano == 0)
        #expect(request.request.metadata == [WireKeyValue(key: "authorization", value: "Bearer pk_some_key")])
        #expect(
            try TokensWatchRevocationsRequest(decoding: request.request.payload)
                == TokensWatchRevocationsRequest(tenantID: "acme", heartbeatSeconds: 10))
    }

    @Test func `PING is answered with its bytes, and frames of other kinds are skipped`() throws {
        let answers = Recording<ScriptedPeer.Frame?>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            let stream = peer.receiveRequest()?.stream ?? 1
            peer.send {
                FrameHeader(payloadByteCount: 0, stream: stream, type: FrameType(rawValue: 0x7F)).append(to: &$0)
                ControlFrame.ping(0x0102_0304_0506_0708, ack: true).append(to: &$0)
                ControlFrame.ping(0x0102_0304_0506_0709, ack: false).append(to: &$0)
            }
            answers.append(peer.receive())
            peer.send { $0.appendDataEnd(stream: stream) }
            answers.append(peer.receive())
        }
        #expect(try Self.watchRevocations(server).status == 0)
        server.stop()
        let answer = try #require(answers.elements.first ?? nil)
        #expect(answer.type == .ping && answer.stream == 0 && answer.header.flags.rawValue == 1)
        #expect(answer.payload == [1, 2, 3, 4, 5, 6, 7, 9])
        // Nothing but the end of the connection follows.
        #expect(answers.elements.count == 2 && answers.elements[1] == nil)
    }

    @Test func `Credit is given back for whole frames, headers too`() throws {
        let credits = Recording<[UInt8]>()
        // The third frame is past half of the window.
        let batch = TokensWatchRevocationsResponse(cursor: Text(String(repeating: "c", count: 15_000)))
        let server = ScriptedServer { peer, _ in
            peer.greet()
            let stream = peer.receiveRequest()?.stream ?? 1
            for _ in 0..<3 { peer.send { $0.appendData(stream: stream) { batch.encode(into: &$0) } } }
            if let window = peer.receive(), window.type == .window, window.stream == stream {
                credits.append(window.payload)
            }
            peer.send { $0.appendDataEnd(stream: stream) }
        }
        #expect(try Self.watchRevocations(server).status == 0)
        server.stop()
        #expect(credits.elements == [WireWindow(credit: UInt32(3 * (10 + batch.encoded().count))).encoded()])
    }

    @Test func `Who is interrupted cancels the call`() throws {
        let codes = Recording<WireCode?>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            let stream = peer.receiveRequest()?.stream ?? 1
            peer.send { $0.appendData(stream: stream) { TokensWatchRevocationsResponse().encode(into: &$0) } }
            codes.append(peer.receive()?.cancelCode)
        }
        try withTemporaryDirectory { directory in
            let process = try Self.watchRevocations(server, in: directory)
            try blockUntil("the client tells of a message") {
                !ChildProcess.lines(in: "\(directory)/output").isEmpty
            }
            process.send(signal: SIGTERM)
            #expect(process.wait(seconds: 60) == 0)
        }
        server.stop()
        #expect(codes.elements == [.cancelled])
    }

    private static let refusals: [(@Sendable (inout ByteBuffer) -> Void, String)] = [
        (
            { ControlFrame.goAway(lastStream: 0, .shutdown).append(to: &$0) },
            "the server stops and did not begin the call: send it again on a new connection"
        ),
        ({ ControlFrame.cancel(stream: 1, .refused).append(to: &$0) }, "the server ended the call: WIRE_CODE_REFUSED"),
        (
            { FrameHeader(payloadByteCount: 0, stream: 0, type: FrameType(rawValue: 0x80)).append(to: &$0) },
            "the server sent a frame of type 0x80, which must not be skipped"
        ),
        ({ _ in }, "the server closed the connection"),
    ]

    @Test(arguments: refusals.indices) func `What ends a call badly is told, with status 1`(_ index: Int) throws {
        let (frame, text) = Self.refusals[index]
        let server = ScriptedServer { peer, _ in
            peer.greet()
            _ = peer.receiveRequest()
            peer.send(frame)
        }
        let outcome = try Self.watchRevocations(server)
        server.stop()
        #expect(outcome.status == 1)
        #expect(outcome.lines.last == "postern_client: \(text)")
    }
}
