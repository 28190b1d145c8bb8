import Base
import Messages
import PosternClient
import Synchronization
import TestSupport
import Testing
import Wire

@Suite(.timeLimit(.minutes(1))) struct ChannelReconnectTests {
    @Test func `Calls fail at once while the server cannot be reached`() async throws {
        let server = ScriptedServer(isListening: false) { _, _ in }
        let channel = try Channel(address: server.address, credentials: .none)
        for number in 0..<3 {
            let failure = await #expect(throws: Failure.self) {
                try await callNumbered(number, on: channel, idempotent: true)
            }
            #expect(failure?.code == .unavailable)
            #expect(failure?.reason == "CONNECTION_FAILED")
            #expect((failure?.retryAfter ?? .zero) > .zero)
        }
        await channel.shutdown()
        server.stop()
    }

    @Test func `A call that waits for the connection gets one when the server comes up`() async throws {
        let server = ScriptedServer(isListening: false) { peer, _ in
            peer.greet()
            if let request = peer.receiveRequest() { peer.echo(request) }
        }
        var options = ChannelOptions()
        options.reconnect.firstDelay = .milliseconds(20)
        let channel = try Channel(address: server.address, credentials: .none, options: options)
        _ = await #expect(throws: Failure.self) { try await callNumbered(1, on: channel) }
        let task = Task { try await callNumbered(2, on: channel, options: CallOptions(waitsForConnection: true)) }
        server.start()
        #expect(try await task.value == "call-2")
        await channel.shutdown()
        server.stop()
    }

    @Test func `When the connection is lost, only an idempotent call is repeated on the next one`() async throws {
        let server = ScriptedServer { peer, connection in
            peer.greet()
            guard let request = peer.receiveRequest() else { return }
            // The first two connections break before the answer.
            if connection >= 2 { peer.echo(request) }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let failure = await #expect(throws: Failure.self) { try await callNumbered(1, on: channel) }
        #expect(failure?.reason == "CONNECTION_LOST")
        #expect(try await callNumbered(2, on: channel, idempotent: true) == "call-2")
        await channel.shutdown()
        server.stop()
    }

    @Test func `A call with an idempotency key is repeated with the same key`() async throws {
        let keys = Recording<Text>()
        let server = ScriptedServer { peer, connection in
            peer.greet()
            guard let frame = peer.receiveRequest() else { return }
            for entry in frame.request.metadata where entry.key == "idempotency-key" { keys.append(entry.value) }
            // The first connection breaks before the answer.
            if connection >= 1 { peer.echo(frame) }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        #expect(try await callNumbered(1, on: channel, options: CallOptions(idempotencyKey: "once")) == "call-1")
        await channel.shutdown()
        server.stop()
        #expect(keys.elements == ["once", "once"])
    }

    @Test func `After a lost answer, not getting a connection again does not say that nothing was sent`() async throws {
        let (received, isDown) = (Promise<Void>(), Semaphore())
        let server = ScriptedServer { peer, _ in
            peer.greet()
            _ = peer.receiveRequest()
            received.succeed(())
            isDown.wait()
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let task = Task { () async -> Failure? in
            do throws(Failure) {
                _ = try await callNumbered(1, on: channel, idempotent: true)
                return nil
            } catch {
                return error
            }
        }
        try await received.value()
        server.stopListening()
        isDown.signal()
        #expect(await task.value?.reason == "CONNECTION_LOST")
        let later = await #expect(throws: Failure.self) { try await callNumbered(2, on: channel, idempotent: true) }
        #expect(later?.reason == "CONNECTION_FAILED")
        await channel.shutdown()
        server.stop()
    }

    @Test func `A lost answer outranks a later refusal that leaves no time to try again`() async throws {
        let server = ScriptedServer { peer, connection in
            peer.greet()
            guard let request = peer.receiveRequest() else { return }
            // The first connection breaks before the answer.
            guard connection > 0 else { return }
            peer.refuse(request.stream, Failure(.unavailable, "NODE_BEHIND", "Later.", retryAfter: .hours(1)))
            while peer.receive() != nil {}
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let failure = await #expect(throws: Failure.self) { try await callNumbered(1, on: channel, idempotent: true) }
        #expect(failure?.reason == "CONNECTION_LOST")
        await channel.shutdown()
        server.stop()
    }

    @Test func `A change that the server may have made outranks a later refusal, too`() async throws {
        let server = ScriptedServer { peer, _ in
            peer.greet()
            guard let first = peer.receiveRequest() else { return }
            peer.refuse(first.stream, Failure(.unavailable, "STORE_UNAVAILABLE", "Nobody knows."))
            guard let second = peer.receiveRequest() else { return }
            peer.refuse(second.stream, Failure(.unavailable, "NODE_BEHIND", "Later.", retryAfter: .hours(1)))
            while peer.receive() != nil {}
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let failure = await #expect(throws: Failure.self) {
            try await callNumbered(1, on: channel, options: CallOptions(idempotencyKey: "once"))
        }
        #expect(failure?.reason == "STORE_UNAVAILABLE")
        await channel.shutdown()
        server.stop()
    }

    @Test(arguments: [
        Failure(.resourceExhausted, "QUOTA_EXCEEDED", "Later.", retryAfter: .seconds(7)),
        Failure(.invalidArgument, "INVALID_POSITION", "Beyond the end."),
    ])
    func `A change that may have been made outranks a refusal that says nothing of it`(refusal: Failure) async throws {
        let server = ScriptedServer { peer, _ in
            peer.greet()
            guard let first = peer.receiveRequest() else { return }
            peer.refuse(
                first.stream, Failure(.unavailable, "STORE_UNAVAILABLE", "Nobody knows.", retryAfter: .milliseconds(1)))
            while let next = peer.receiveRequest() { peer.refuse(next.stream, refusal) }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let failure = await #expect(throws: Failure.self) {
            try await callNumbered(1, on: channel, options: CallOptions(idempotencyKey: "once"))
        }
        #expect(failure?.reason == "STORE_UNAVAILABLE")
        #expect(failure?.retryAfter == refusal.retryAfter ?? .milliseconds(1))
        await channel.shutdown()
        server.stop()
    }

    @Test func `A position that is refused after a lost answer is forgotten, and the change asked for again`()
        async throws
    {
        let server = ScriptedServer { peer, connection in
            peer.greet()
            // The first connection breaks before the answer.
            guard let first = peer.receiveRequest(), connection > 0 else { return }
            peer.refuse(first.stream, Failure(.invalidArgument, "INVALID_POSITION", "Of another cluster."))
            if let second = peer.receiveRequest() { peer.echo(second) }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        #expect(try await callNumbered(1, on: channel, options: CallOptions(idempotencyKey: "once")) == "call-1")
        await channel.shutdown()
        server.stop()
    }

    @Test func `UNAVAILABLE is tried four times in all, other refusals once`() async throws {
        let attempts = Recording<Text>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            while let frame = peer.receiveRequest() {
                attempts.append(frame.request.method)
                let code: StatusCode = frame.request.method == "Call" ? .unavailable : .internal
                peer.refuse(frame.stream, Failure(code, "BUSY", "Not now."))
            }
        }
        var options = ChannelOptions()
        options.retry.firstDelayMax = .milliseconds(1)
        let channel = try Channel(address: server.address, credentials: .none, options: options)
        let failure = await #expect(throws: Failure.self) { try await callNumbered(1, on: channel, idempotent: true) }
        #expect(failure?.reason == "BUSY")
        await #expect(throws: Failure.self) {
            let _: ProjectServerInfoResponse = try await channel.unary(
                "test.Echo", "Broken", ProjectServerInfoRequest(), idempotent: true)
        }
        await channel.shutdown()
        server.stop()
        #expect(attempts.elements == ["Call", "Call", "Call", "Call", "Broken"])
    }

    @Test func `After GOAWAY calls in flight end where they are, unprocessed ones elsewhere`() async throws {
        let served = Recording<String>()
        let server = ScriptedServer { peer, connection in
            peer.greet()
            if connection == 0 {
                guard let first = peer.receiveRequest(), peer.receiveRequest() != nil else { return }
                peer.send { ControlFrame.goAway(lastStream: first.stream, .shutdown).append(to: &$0) }
                served.append("first connection")
                peer.echo(first)
                // The client leaves when nothing is in flight any more.
                if peer.receive() == nil { served.append("left") }
            } else {
                guard let request = peer.receiveRequest() else { return }
                served.append("next connection")
                peer.echo(request)
            }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let answers = try await withThrowingTaskGroup(of: Text.self) { group in
            for number in 0..<2 { group.addTask { try await callNumbered(number, on: channel) } }
            return try await group.reduce(into: Set<Text>()) { $0.insert($1) }
        }
        #expect(answers == ["call-0", "call-1"])
        await channel.shutdown()
        server.stop()
        #expect(Set(served.elements) == ["first connection", "next connection", "left"])
    }

    @Test func `A stream the server refuses is sent again, but not for ever`() async throws {
        let attempts = Recording<UInt32>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            while let request = peer.receiveRequest() {
                attempts.append(request.stream)
                let name = try? TenantsGetRequest(decoding: request.request.payload).tenantID
                if name == "call-1", attempts.elements.count == 2 {
                    peer.echo(request)
                } else {
                    peer.send { ControlFrame.cancel(stream: request.stream, .refused).append(to: &$0) }
                }
            }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        #expect(try await callNumbered(1, on: channel) == "call-1")
        let failure = await #expect(throws: Failure.self) { try await callNumbered(2, on: channel) }
        #expect(failure?.code == .unavailable)
        #expect(failure?.reason == "REFUSED")
        await channel.shutdown()
        server.stop()
        #expect(attempts.elements.count == 6)
    }

    @Test func `A PING is answered, and a silent server is given up when keepalive is on`() async throws {
        let (answers, isClosedByClient) = (Recording<[UInt8]>(), Recording<Bool>())
        let server = ScriptedServer { peer, _ in
            peer.greet()
            peer.send { ControlFrame.ping(7, ack: false).append(to: &$0) }
            while let frame = peer.receive() {
                if frame.type == .ping, frame.header.flags.contains(.ack) { answers.append(frame.payload) }
            }
            isClosedByClient.append(peer.isClosedByClient)
        }
        var options = ChannelOptions()
        options.keepalive = .milliseconds(20)
        options.keepaliveTimeout = .seconds(1)
        let channel = try Channel(address: server.address, credentials: .none, options: options)
        let failure = await #expect(throws: Failure.self) { try await callNumbered(1, on: channel) }
        #expect(failure?.reason == "CONNECTION_LOST")
        await channel.shutdown()
        server.stop()
        #expect(answers.elements == [[0, 0, 0, 0, 0, 0, 0, 7]])
        #expect(Set(isClosedByClient.elements) == [true])
    }

    @Test func `A server that breaks the protocol is left`() async throws {
        let isClosedByClient = Recording<Bool>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            _ = peer.receiveRequest()
            peer.send { $0.appendHello(WireHello(protocolVersion: 1)) }
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
}
