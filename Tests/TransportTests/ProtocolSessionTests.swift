import Base
import Messages
import Reactor
import TestSupport
import Testing
import Wire

@testable import Transport

/// A protocol other than the native one: a call is a line, `Echo text` for example, and so is its answer.
private final class LineSession: ProtocolSession {
    private static let service: StaticString = "test.Service"

    var name: StaticString { "lines" }
    private(set) var hasSeenRequest = false
    private(set) var partialSince: Instant?
    private(set) var request = RequestEnvelope.none
    private var lastStream: UInt32 = 0
    private var inFlight: Set<UInt32> = []
    /// The length of the line that was handed out last, which still lies in the input.
    private var deliveredByteCount = 0

    func next(in input: inout ByteBuffer, output: inout OutputQueue, now: Instant, mayBegin: Bool) -> SessionEvent {
        input.consume(deliveredByteCount)
        deliveredByteCount = 0
        let readable = input.readable
        guard let end = readable.firstIndex(of: UInt8(ascii: "\n")) else {
            partialSince = input.isEmpty ? nil : partialSince ?? now
            return .needMore
        }
        deliveredByteCount = end + 1
        (hasSeenRequest, partialSince) = (true, nil)
        lastStream += 1
        inFlight.insert(lastStream)
        let space = readable[..<end].firstIndex(of: UInt8(ascii: " ")) ?? end
        let service = Self.service
        request = RequestEnvelope(
            service: UnsafeRawBufferPointer(start: service.utf8Start, count: service.utf8CodeUnitCount),
            method: UnsafeRawBufferPointer(rebasing: readable[..<space]),
            payload: UnsafeRawBufferPointer(rebasing: readable[space..<end].dropFirst()))
        return .begin(stream: lastStream, kind: .unary)
    }

    func authenticated(output: inout OutputQueue) {}
    func lostCredential(output: inout OutputQueue) {}

    func end(_ reason: CloseReason, output: inout OutputQueue) -> SessionEvent {
        write("BYE", &output)
        return .close
    }

    func beginDrain(output: inout OutputQueue) -> SessionEvent { .echo }
    func finishDrain(output: inout OutputQueue) -> SessionEvent {
        inFlight.isEmpty ? end(.shutdown, output: &output) : .none
    }

    func wantsAnswer(stream: UInt32) -> Bool { inFlight.contains(stream) }

    func appendResponse(
        stream: UInt32, metadata: OutgoingMetadata, output: inout OutputQueue,
        write: (inout ByteBuffer) throws -> Void
    ) rethrows -> Bool {
        try output.append {
            $0.append(contentsOf: [UInt8]("OK ".utf8))
            try write(&$0)
            $0.append(contentsOf: [UInt8(ascii: "\n")])
        }
        return true
    }

    func appendFailure(stream: UInt32, _ failure: Failure, metadata: OutgoingMetadata, output: inout OutputQueue) {
        write(failure.reason, &output)
    }

    func maySendMessage(stream: UInt32) -> Bool { false }
    func appendMessage(
        stream: UInt32, output: inout OutputQueue, write: (inout ByteBuffer) throws -> Bool
    ) rethrows -> Bool { false }
    func appendEnd(stream: UInt32, output: inout OutputQueue) {}
    func consumed(stream: UInt32, byteCount: Int, output: inout OutputQueue) {}
    func abandoned(stream: UInt32) {}

    func finished(stream: UInt32, output: inout OutputQueue) -> SessionEvent {
        inFlight.remove(stream)
        return .none
    }

    private func write(_ text: String, _ output: inout OutputQueue) {
        output.append { $0.append(contentsOf: [UInt8]((text + "\n").utf8)) }
    }
}

private struct Lines: ProtocolChoice {
    func session(firstByte: UInt8, now: Instant) -> (any ProtocolSession)? {
        firstByte == UInt8(ascii: "E") ? LineSession() : nil
    }

    func refusal(firstByte: UInt8) -> [UInt8] { [] }
}

private final class NoOwner: ConnectionOwner {
    func handshakeBegan(_ connection: Connection) {}
    func handshakeEnded(_ connection: Connection) {}
    func refused(_ connection: Connection, firstByte: UInt8) {}
    func authenticated(_ connection: Connection) {}
    func lostCredential(_ connection: Connection) {}
    func closed(_ connection: Connection) {}
}

/// A connection does not know which protocol it carries.
@Suite struct ProtocolSessionTests {
    private func withConnection(_ body: (RawClient, Connection) async throws -> Void) async throws {
        let loops = EventLoopGroup(count: 1, name: "sessions")
        loops.start()
        let limits = Limits()
        let loop = loops.loops[0]
        let (client, theirs) = try RawClient.pair()
        let share = LoopShare(
            of: loop, number: 0, memory: ConnectionMemory(limits: limits, loopCount: 1), limits: SharedLimits(limits))
        let connection = Connection(
            owning: Socket(owning: theirs), from: Peer(of: theirs), acceptedAt: .now, speaking: Lines(), id: 1,
            on: loop, dispatcher: Echo(), metrics: TransportMetrics(), share: share, owner: NoOwner())
        loop.run { connection.assumeIsolated { $0.start() } }
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(client, connection)) } catch { outcome = .failure(error) }
        await connection.closeNow()
        end(loops)
        try outcome.get()
    }

    private func end(_ loops: EventLoopGroup) {
        loops.stop()
        loops.join()
    }

    private static func read(_ client: RawClient, until end: String) throws -> String {
        var text = ""
        while !text.hasSuffix(end) {
            let bytes = try client.receive(1_000)
            if bytes.isEmpty { break }
            text += String(decoding: bytes, as: UTF8.self)
        }
        return text
    }

    @Test func `Calls of another protocol are dispatched and answered, and its connections end in good order`()
        async throws
    {
        try await withConnection { client, connection in
            try client.send([UInt8]("Echo one\nEcho two\nEc".utf8))
            #expect(try Self.read(client, until: "two\n") == "OK one\nOK two\n")
            try client.send([UInt8]("ho three\n".utf8))
            #expect(try Self.read(client, until: "three\n") == "OK three\n")
            await connection.beginDrain()
            #expect(try Self.read(client, until: "BYE\n") == "BYE\n")
            #expect(try client.receive(1).isEmpty)
        }
    }

    @Test func `What does not begin as the protocol does is not listened to`() async throws {
        try await withConnection { client, _ in
            try client.send([UInt8]("Hold on\n".utf8))
            #expect(try client.receive(1).isEmpty)
        }
    }
}
