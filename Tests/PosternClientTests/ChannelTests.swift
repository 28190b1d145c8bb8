import Base
import Messages
import PosternClient
import TestSupport
import Testing
import Wire

/// Makes a call with this number in its name, which scripts send back as the version.
func callNumbered(
    _ number: Int, on channel: Channel, idempotent: Bool = false, options: CallOptions = .init()
) async throws(Failure) -> Text {
    let request = TenantsGetRequest(tenantID: Text("call-\(number)"))
    let response: ProjectServerInfoResponse = try await channel.unary(
        "test.Echo", "Call", request, idempotent: idempotent, options: options)
    return response.version
}

extension ScriptedPeer {
    func echo(_ frame: Frame) {
        let request = try? TenantsGetRequest(decoding: frame.request.payload)
        respond(frame.stream, ProjectServerInfoResponse(version: request?.tenantID ?? "unreadable"))
    }
}

@Suite(.timeLimit(.minutes(1))) struct ChannelTests {
    @Test func `HELLO carries the credential, and the first request follows without waiting`() async throws {
        let hellos = Recording<WireHello?>()
        let server = ScriptedServer { peer, _ in
            guard let first = peer.receive(), let second = peer.receive() else { return }
            hellos.append(try? WireHello(decoding: first.payload))
            peer.send { $0.appendHello(WireHello(protocolVersion: 1)) }
            peer.echo(second)
        }
        let channel = try Channel(address: server.address, credentials: .apiKey(Secret("pk_test")))
        #expect(try await callNumbered(1, on: channel) == "call-1")
        await channel.shutdown()
        server.stop()
        #expect(hellos.elements.first??.authorization == "Bearer pk_test")
        #expect(hellos.elements.first??.software == "postern-client")
    }

    @Test func `Many calls are in flight together, and answers may come in any order`() async throws {
        let server = ScriptedServer { peer, _ in
            peer.greet()
            let requests = (0..<100).compactMap { _ in peer.receiveRequest() }
            for request in requests.reversed() { peer.echo(request) }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let answers = try await withThrowingTaskGroup(of: (Int, Text).self) { group in
            for number in 0..<100 {
                group.addTask { (number, try await callNumbered(number, on: channel)) }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        for number in 0..<100 { #expect(answers[number] == Text("call-\(number)")) }
        await channel.shutdown()
        server.stop()
    }

    @Test func `Calls above the server's limit wait for an answer`() async throws {
        let answersToPing = Recording<FrameType?>()
        let server = ScriptedServer { peer, _ in
            peer.greet(streamsMax: 2)
            if let first = peer.receiveRequest() { peer.echo(first) }
            var open: [ScriptedPeer.Frame] = []
            for number in 1...10 {
                guard let request = peer.receiveRequest() else { return }
                open.append(request)
                guard open.count == 2 else { continue }
                // A third request would arrive before the PING's answer.
                peer.send { ControlFrame.ping(UInt64(number), ack: false).append(to: &$0) }
                answersToPing.append(peer.receive()?.type)
                peer.echo(open.removeFirst())
            }
            open.forEach { peer.echo($0) }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        // Once this answer has come, the server's HELLO is there, too.
        _ = try await callNumbered(0, on: channel)
        try await withThrowingTaskGroup(of: Text.self) { group in
            for number in 1...10 { group.addTask { try await callNumbered(number, on: channel) } }
            try await group.waitForAll()
        }
        await channel.shutdown()
        server.stop()
        #expect(answersToPing.elements == [FrameType?](repeating: .ping, count: 9))
    }

    @Test func `Only so many calls wait`() async throws {
        let server = ScriptedServer { peer, _ in
            peer.greet(streamsMax: 1)
            if let first = peer.receiveRequest() { peer.echo(first) }
            while peer.receive() != nil {}
        }
        var options = ChannelOptions()
        options.waitingCallsMax = 3
        let channel = try Channel(address: server.address, credentials: .none, options: options)
        _ = try await callNumbered(0, on: channel)
        let reasons = await withTaskGroup(of: String.self) { group in
            for number in 1...20 {
                group.addTask {
                    do throws(Failure) {
                        _ = try await callNumbered(number, on: channel)
                        return "OK"
                    } catch {
                        return error.reason
                    }
                }
            }
            var reasons: [String] = []
            // One call is in flight and three wait.
            while reasons.count < 16, let reason = await group.next() { reasons.append(reason) }
            await channel.shutdown()
            return reasons
        }
        server.stop()
        #expect(reasons == [String](repeating: "TOO_MANY_WAITING_CALLS", count: 16))
    }

    @Test func `A call that gets no answer ends at its deadline, and the server is told`() async throws {
        let codes = Recording<WireCode?>()
        let timeouts = Recording<Int64>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            guard let request = peer.receiveRequest() else { return }
            timeouts.append(request.request.timeoutNano)
            codes.append(peer.receive()?.cancelCode)
        }
        let channel = try Channel(address: server.address, credentials: .none)
        await #expect(throws: Failure.self) {
            try await callNumbered(1, on: channel, options: CallOptions(timeout: .seconds(1)))
        }
        server.stop()
        await channel.shutdown()
        #expect(codes.elements == [.deadlineExceeded])
        #expect(timeouts.elements.allSatisfy { 0 < $0 && $0 <= 1_000_000_000 })
    }

    @Test func `Cancelling the task cancels the call on the server`() async throws {
        let codes = Recording<WireCode?>()
        let isThere = Promise<Void>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            _ = peer.receiveRequest()
            isThere.succeed(())
            codes.append(peer.receive()?.cancelCode)
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let task = Task { try await callNumbered(1, on: channel) }
        try await isThere.value()
        task.cancel()
        let failure = await #expect(throws: Failure.self) { try await task.value }
        #expect(failure?.code == .cancelled)
        server.stop()
        await channel.shutdown()
        #expect(codes.elements == [.cancelled])
    }

    @Test func `A call's options travel as metadata`() async throws {
        let seen = Recording<[WireKeyValue]>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            guard let request = peer.receiveRequest() else { return }
            seen.append(request.request.metadata)
            peer.echo(request)
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let options = CallOptions(
            authorization: Secret("Bearer pk_other"), requestID: "r-1", idempotencyKey: "i-1", traceparent: "t-1")
        _ = try await callNumbered(1, on: channel, options: options)
        await channel.shutdown()
        server.stop()
        let entries = Dictionary(uniqueKeysWithValues: seen.elements.joined().map { ($0.key, $0.value) })
        #expect(
            entries == [
                "authorization": "Bearer pk_other", "x-request-id": "r-1", "idempotency-key": "i-1",
                "traceparent": "t-1",
            ])
    }

    @Test func `A refusal arrives as the failure the server made`() async throws {
        let refusal = Failure(
            .permissionDenied, "ADMIN_RESTRICTED_OPERATION", "Sign-up is off.", metadata: [.init("tenant", "shop")],
            guidance: .init(locale: "en", message: "Ask the shop.", url: "https://example.org/help"))
        let server = ScriptedServer { peer, _ in
            peer.greet()
            if let request = peer.receiveRequest() { peer.refuse(request.stream, refusal) }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let failure = await #expect(throws: Failure.self) { try await callNumbered(1, on: channel) }
        #expect(failure == refusal)
        await channel.shutdown()
        server.stop()
    }

    @Test func `An answer that cannot be read is the server's fault`() async throws {
        let server = ScriptedServer { peer, _ in
            peer.greet()
            for payload in [[0x0A, 0xFF], [0xFF]] as [[UInt8]] {
                guard let request = peer.receiveRequest() else { return }
                peer.send { $0.appendResponse(stream: request.stream) { $0.append(contentsOf: payload) } }
            }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        for number in 0..<2 {
            let failure = await #expect(throws: Failure.self) { try await callNumbered(number, on: channel) }
            #expect(failure?.reason == "MALFORMED_RESPONSE")
        }
        await channel.shutdown()
        server.stop()
    }

    @Test func `A large request waits for the server's HELLO, one above its limit is not sent`() async throws {
        let sizes = Recording<Int>()
        let server = ScriptedServer { peer, _ in
            peer.greet(frameBytesMax: 200_000)
            guard let request = peer.receiveRequest() else { return }
            sizes.append(request.request.payload.count)
            peer.respond(request.stream, ProjectServerInfoResponse())
        }
        let channel = try Channel(address: server.address, credentials: .none)
        func send(_ byteCount: Int) async throws -> ProjectServerInfoResponse {
            let request = TenantsGetRequest(tenantID: Text(String(repeating: "x", count: byteCount)))
            return try await channel.unary("s", "m", request, idempotent: false)
        }
        _ = try await send(150_000)
        let failure = await #expect(throws: Failure.self) { try await send(200_000) }
        #expect(failure?.reason == "MESSAGE_TOO_LARGE")
        await channel.shutdown()
        server.stop()
        #expect(sizes.elements.allSatisfy { $0 > 150_000 })
        #expect(sizes.elements.count == 1)
    }

    @Test func `The largest page of users can be read`() async throws {
        let provider = ProviderInfo(
            providerID: "p", rawID: "1", email: "e", displayName: "d", photoURL: "u", phoneNumber: "n")
        let user = User(
            tenantID: "t", uid: "u", email: "e", emailVerified: true, displayName: "d", photoURL: "p",
            phoneNumber: "n", disabled: true, providers: [ProviderInfo](repeating: provider, count: 10),
            customClaimsJSON: [1], createdAtMicros: 1, lastSignInAtMicros: 1, lastRefreshAtMicros: 1,
            tokensValidAfterMicros: 1)
        let page = UsersListResponse(users: [User](repeating: user, count: 1_000), nextPageToken: "next")
        let server = ScriptedServer { peer, _ in
            peer.greet()
            if let request = peer.receiveRequest() { peer.respond(request.stream, page) }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        #expect(try await UsersClient(channel: channel).list(UsersListRequest()) == page)
        await channel.shutdown()
        server.stop()
    }

    @Test func `Shutting down ends calls in flight and refuses later ones`() async throws {
        let isThere = Promise<Void>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            _ = peer.receiveRequest()
            isThere.succeed(())
            while peer.receive() != nil {}
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let task = Task { try await callNumbered(1, on: channel, idempotent: true) }
        try await isThere.value()
        await channel.shutdown()
        await channel.shutdown()
        let failure = await #expect(throws: Failure.self) { try await task.value }
        #expect(failure?.reason == "CHANNEL_CLOSED")
        let later = await #expect(throws: Failure.self) { try await callNumbered(2, on: channel) }
        #expect(later?.reason == "CHANNEL_CLOSED")
        server.stop()
    }

    @Test(arguments: ["", "host", "host:", "host:0", "host:65536", ":7400", "::1:7400", "[::1]"])
    func `An address that is not host and port is refused`(address: String) {
        let failure = #expect(throws: Failure.self) { try Channel(address: address, credentials: .none) }
        #expect(failure?.reason == "INVALID_ADDRESS")
    }
}
