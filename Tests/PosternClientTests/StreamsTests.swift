import Base
import Messages
import PosternClient
import TestSupport
import Testing
import Wire

private func denial(_ sequence: Int64, padding: Int = 0) -> TenantsWatchDenialsResponse {
    TenantsWatchDenialsResponse(
        denial: Denial(sequence: sequence, identifierHash: [UInt8](repeating: 1, count: padding)))
}

extension ScriptedPeer {
    fileprivate func send(_ message: some Message, on stream: UInt32) {
        send { $0.appendData(stream: stream) { message.encode(into: &$0) } }
    }
}

@Suite(.timeLimit(.minutes(1))) struct StreamsTests {
    @Test func `A server stream's messages come in order, then its end`() async throws {
        let kinds = Recording<FrameFlags>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            guard let request = peer.receiveRequest() else { return }
            kinds.append(request.header.flags)
            for sequence in 1...100 { peer.send(denial(Int64(sequence)), on: request.stream) }
            peer.send { $0.appendDataEnd(stream: request.stream) }
            while peer.receive() != nil {}
        }
        let channel = try Channel(address: server.address, credentials: .none)
        var sequences: [Int64] = []
        for try await message in try await TenantsClient(channel: channel).watchDenials(.init()) {
            sequences.append(message.denial?.sequence ?? -1)
        }
        #expect(sequences == Array(1...100))
        await channel.shutdown()
        server.stop()
        #expect(kinds.elements == [.remoteClosed])
    }

    @Test func `What ends a stream badly is thrown behind its messages`() async throws {
        let server = ScriptedServer { peer, _ in
            peer.greet()
            guard let request = peer.receiveRequest() else { return }
            peer.send(denial(1), on: request.stream)
            peer.refuse(request.stream, Failure(.notFound, "TENANT_NOT_FOUND", "It was deleted."))
            while peer.receive() != nil {}
        }
        let channel = try Channel(address: server.address, credentials: .none)
        var iterator = try await TenantsClient(channel: channel).watchDenials(.init()).makeAsyncIterator()
        #expect(try await iterator.next() == denial(1))
        let failure = await #expect(throws: Failure.self) { try await iterator.next() }
        #expect(failure?.reason == "TENANT_NOT_FOUND")
        #expect(try await iterator.next() == nil)
        await channel.shutdown()
        server.stop()
    }

    @Test func `A reader who leaves early cancels the call`() async throws {
        let codes = Recording<WireCode?>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            guard let request = peer.receiveRequest() else { return }
            peer.send(denial(1), on: request.stream)
            codes.append(peer.receive()?.cancelCode)
        }
        let channel = try Channel(address: server.address, credentials: .none)
        for try await _ in try await TenantsClient(channel: channel).watchDenials(.init()) { break }
        server.stop()
        await channel.shutdown()
        #expect(codes.elements == [.cancelled])
    }

    @Test func `Cancelling a reader's task cancels the call`() async throws {
        let codes = Recording<WireCode?>()
        let isThere = Promise<Void>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            _ = peer.receiveRequest()
            isThere.succeed(())
            codes.append(peer.receive()?.cancelCode)
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let task = Task {
            for try await _ in try await TenantsClient(channel: channel).watchDenials(.init()) {}
        }
        try await isThere.value()
        task.cancel()
        let failure = await #expect(throws: Failure.self) { try await task.value }
        #expect(failure?.code == .cancelled)
        server.stop()
        await channel.shutdown()
        #expect(codes.elements == [.cancelled])
    }

    @Test func `The server waits for the reader once the window is full`() async throws {
        let credits = Recording<UInt32>()
        let server = ScriptedServer { peer, _ in
            guard let hello = peer.greet(), let request = peer.receiveRequest() else { return }
            var credit = Int(hello.initialWindow)
            for sequence in 1...20 {
                while credit <= 0 {
                    guard let frame = peer.receive(), frame.type == .window,
                        let window = try? WireWindow(decoding: frame.payload)
                    else { return }
                    credits.append(window.credit)
                    credit += Int(window.credit)
                }
                let message = denial(Int64(sequence), padding: 50_000)
                peer.send(message, on: request.stream)
                credit -= message.encodedByteCount + FrameHeader.byteCount
            }
            peer.send { $0.appendDataEnd(stream: request.stream) }
            while peer.receive() != nil {}
        }
        let channel = try Channel(address: server.address, credentials: .none)
        var count = 0
        for try await _ in try await TenantsClient(channel: channel).watchDenials(.init()) { count += 1 }
        #expect(count == 20)
        await channel.shutdown()
        server.stop()
        #expect(!credits.elements.isEmpty)
    }

    @Test func `A stock server that does not wait for the reader loses the stream, not the connection`() async throws {
        let server = ScriptedServer { peer, _ in
            _ = peer.receive()
            // An empty RESPONSE on stream 0: the answer to HELLO of a server that speaks ttrpc only.
            let answer: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 2, 0]
            peer.send { $0.append(contentsOf: answer) }
            guard let request = peer.receiveRequest() else { return }
            for sequence in 1...40 { peer.send(denial(Int64(sequence), padding: 50_000), on: request.stream) }
            while let call = peer.receiveRequest() { peer.echo(call) }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        var iterator = try await TenantsClient(channel: channel).watchDenials(.init()).makeAsyncIterator()
        // The answer comes behind all messages of the stream.
        #expect(try await callNumbered(1, on: channel) == "call-1")
        var (count, failure) = (0, Failure?.none)
        do throws(Failure) {
            while try await iterator.next() != nil { count += 1 }
        } catch {
            failure = error
        }
        #expect(failure?.reason == "STREAM_CLOSED" && failure?.code == .resourceExhausted)
        // 256 KiB, and one more message.
        #expect(count == 6)
        #expect(try await callNumbered(2, on: channel) == "call-2")
        await channel.shutdown()
        server.stop()
    }

    @Test func `Messages go both ways, and sending waits for the server's window`() async throws {
        let sizes = Recording<Int>()
        let server = ScriptedServer { peer, _ in
            peer.greet(window: 65_536)
            guard let request = peer.receiveRequest(), request.header.flags == .remoteOpen else { return }
            sizes.append(request.request.payload.count)
            peer.send(UsersImportResponse(checkpoint: 1), on: request.stream)
            var unread = 0
            while let frame = peer.receive(), frame.type == .data {
                if frame.header.flags.contains(.remoteClosed) { break }
                sizes.append(frame.payload.count)
                unread += frame.payload.count + FrameHeader.byteCount
                if unread > 65_536 {
                    peer.send { ControlFrame.window(stream: request.stream, credit: UInt32(unread)).append(to: &$0) }
                    unread = 0
                }
                peer.send(UsersImportResponse(checkpoint: Int64(sizes.elements.count)), on: request.stream)
            }
            peer.send { $0.appendDataEnd(stream: request.stream) }
            while peer.receive() != nil {}
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let stream = try await UsersClient(channel: channel).import()
        let sender = Task {
            for number in 0..<30 {
                let user = ImportUser(uid: Text("\(number)"), customClaimsJSON: [UInt8](repeating: 32, count: 20_000))
                try await stream.send(UsersImportRequest(users: [user]))
            }
            stream.finish()
        }
        var checkpoints: [Int64] = []
        for try await response in stream { checkpoints.append(response.checkpoint) }
        try await sender.value
        #expect(checkpoints == Array(1...30))
        let failure = await #expect(throws: Failure.self) { try await stream.send(UsersImportRequest()) }
        #expect(failure?.reason == "STREAM_CLOSED")
        await channel.shutdown()
        server.stop()
        #expect(sizes.elements.count == 30)
    }

    @Test func `Whoever sends is told how the stream ended`() async throws {
        let server = ScriptedServer { peer, _ in
            peer.greet(window: 1)
            guard let request = peer.receiveRequest() else { return }
            peer.refuse(request.stream, Failure(.permissionDenied, "INSUFFICIENT_PERMISSION", "Not yours."))
            while peer.receive() != nil {}
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let stream = try await UsersClient(channel: channel).import()
        try await stream.send(UsersImportRequest(tenantID: "a"))
        let failure = await #expect(throws: Failure.self) {
            for try await _ in stream {}
        }
        #expect(failure?.reason == "INSUFFICIENT_PERMISSION")
        await #expect(throws: Failure.self) { try await stream.send(UsersImportRequest(tenantID: "b")) }
        await channel.shutdown()
        server.stop()
    }

    @Test func `A bidirectional stream opens with its first message, and not without one`() async throws {
        let payloads = Recording<[UInt8]>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            guard let request = peer.receiveRequest() else { return }
            payloads.append(request.request.payload)
            guard let end = peer.receive(), end.header.flags == [.remoteClosed, .noData] else { return }
            peer.send { $0.appendDataEnd(stream: request.stream) }
            while peer.receive() != nil {}
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let users = UsersClient(channel: channel)
        let empty = try await users.import()
        empty.finish()
        let failure = await #expect(throws: Failure.self) { for try await _ in empty {} }
        #expect(failure?.reason == "STREAM_CLOSED")
        let stream = try await users.import()
        try await stream.send(UsersImportRequest(tenantID: "first"))
        stream.finish()
        for try await _ in stream { Issue.record("there was no answer") }
        let unused = try await users.import()
        await channel.shutdown()
        let closed = await #expect(throws: Failure.self) { for try await _ in unused {} }
        #expect(closed?.reason == "CHANNEL_CLOSED")
        server.stop()
        #expect(payloads.elements == [UsersImportRequest(tenantID: "first").encoded()])
    }

    @Test(arguments: [false, true])
    func `A stream that is given back is sent again, with its end`(isLeaving: Bool) async throws {
        let attempts = Recording<UInt32>()
        let server = ScriptedServer { peer, _ in
            peer.greet()
            while let request = peer.receiveRequest() {
                guard peer.receive()?.header.flags == [.remoteClosed, .noData] else { return }
                attempts.append(request.stream)
                if attempts.elements.count > 1 {
                    peer.send { $0.appendDataEnd(stream: request.stream) }
                } else if isLeaving {
                    peer.send { ControlFrame.goAway(lastStream: 0, .shutdown).append(to: &$0) }
                } else {
                    peer.send { ControlFrame.cancel(stream: request.stream, .refused).append(to: &$0) }
                }
            }
        }
        let channel = try Channel(address: server.address, credentials: .none)
        let stream = try await UsersClient(channel: channel).import()
        try await stream.send(UsersImportRequest(tenantID: "first"))
        stream.finish()
        for try await _ in stream { Issue.record("there was no answer") }
        await channel.shutdown()
        server.stop()
        #expect(attempts.elements.count == 2)
    }

    @Test func `A stream fails when the connection is lost`() async throws {
        let server = ScriptedServer { peer, _ in
            peer.greet()
            guard let request = peer.receiveRequest() else { return }
            peer.send(denial(1), on: request.stream)
        }
        let channel = try Channel(address: server.address, credentials: .none)
        var iterator = try await TenantsClient(channel: channel).watchDenials(.init()).makeAsyncIterator()
        #expect(try await iterator.next() == denial(1))
        let failure = await #expect(throws: Failure.self) { try await iterator.next() }
        #expect(failure?.reason == "CONNECTION_LOST")
        await channel.shutdown()
        server.stop()
    }
}
