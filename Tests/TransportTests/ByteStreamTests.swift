import Base
import Glibc
import Messages
import Reactor
import TestSupport
import Testing
import Wire

@testable import Transport

/// A stream other than a socket: each byte is changed on its way, a write takes few bytes at a time, and nothing is
/// read before the peer has shown a greeting. TLS is the same, but for the keys.
private struct ScrambledStream: ByteStream {
    static let key: UInt8 = 0x5A
    static let greeting = [UInt8]("scrambled".utf8)
    private static let writtenAtOnceMax = 100

    var socket: Socket
    private var greetingLeft = greeting[...]

    init(_ socket: Socket) { self.socket = socket }

    var descriptor: Int32 { socket.descriptor }

    mutating func read(into buffer: UnsafeMutableRawPointer, byteCount: Int) -> ByteStreamResult {
        while let expected = greetingLeft.first {
            guard case .bytes(let count) = socket.read(into: buffer, byteCount: 1) else { return .wouldBlock }
            guard count == 1, buffer.load(as: UInt8.self) == expected else { return .failed(errno: EPROTO) }
            greetingLeft.removeFirst()
        }
        let result = socket.read(into: buffer, byteCount: byteCount)
        guard case .bytes(let count) = result else { return result }
        for byte in UnsafeMutableRawBufferPointer(start: buffer, count: count).indices {
            buffer.storeBytes(
                of: buffer.load(fromByteOffset: byte, as: UInt8.self) ^ Self.key, toByteOffset: byte, as: UInt8.self)
        }
        return result
    }

    mutating func write(_ bytes: UnsafeRawBufferPointer) -> ByteStreamResult {
        let scrambled = bytes.prefix(Self.writtenAtOnceMax).map { $0 ^ Self.key }
        return scrambled.withUnsafeBytes { socket.write($0) }
    }

    func closeForWriting() { socket.closeForWriting() }

    func close() { socket.close() }
}

@Suite struct ByteStreamTests {
    private func withServer(_ body: (Server) async throws -> Void) async throws {
        let loops = EventLoopGroup(count: 1, name: "streams")
        let server = Server(loops: loops, dispatcher: Echo(), limits: Limits(), log: .silent, software: "test/1")
        loops.start()
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(server)) } catch { outcome = .failure(error) }
        await server.closeAll()
        end(loops)
        try outcome.get()
    }

    private func end(_ loops: EventLoopGroup) {
        loops.stop()
        loops.join()
    }

    /// The bytes that the client sends, as the stream wants them.
    private static func scrambled(_ bytes: [UInt8]) -> [UInt8] { bytes.map { $0 ^ ScrambledStream.key } }

    /// The frames that come until the server closes.
    private static func frames(_ client: RawClient) throws -> [RawClient.Frame] {
        var bytes: [UInt8] = []
        while case let some = try client.receive(65_536), !some.isEmpty { bytes += scrambled(some) }
        var frames: [RawClient.Frame] = []
        while let header = bytes.withUnsafeBytes({ FrameHeader.read($0) }) {
            let end = FrameHeader.byteCount + Int(header.payloadByteCount)
            frames.append(RawClient.Frame(header: header, payload: Array(bytes[FrameHeader.byteCount..<end])))
            bytes.removeFirst(end)
        }
        return frames
    }

    @Test(arguments: [1, 7, 100_000]) func `Calls go over another stream as over a socket`(pieceByteCount: Int)
        async throws
    {
        try await withServer { server in
            let (client, theirs) = try RawClient.pair()
            server.adopt(ScrambledStream(Socket(owning: theirs)))
            var bytes = ScrambledStream.greeting
            let texts = (0..<20).map { Text(String(repeating: "\($0) ", count: 1 + 20 * $0)) }
            for text in texts {
                let request = client.request(Echo.echo, WireKeyValue(key: text), stream: client.nextStream())
                bytes += Self.scrambled(request)
            }
            for start in stride(from: 0, to: bytes.count, by: pieceByteCount) {
                try client.send(Array(bytes[start..<min(bytes.count, start + pieceByteCount)]))
            }
            client.closeForWriting()
            let answers = try Self.frames(client).map { try RawClient.response($0, returning: WireKeyValue.self).key }
            #expect(answers == texts)
        }
    }

    @Test func `A stream that fails ends its connection`() async throws {
        try await withServer { server in
            let (client, theirs) = try RawClient.pair()
            server.adopt(ScrambledStream(Socket(owning: theirs)))
            try client.send([UInt8]("scrambler".utf8))
            #expect(try client.receive(1).isEmpty)
        }
    }
}
