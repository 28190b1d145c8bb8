import Base
import Glibc
import Messages
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

/// A stream whose handshake has something to send, waits until the descriptor takes it, and sends it in the next read.
private struct LaggingStream: ByteStream {
    static let greeting: UInt8 = 0x21

    private var socket: Socket
    private(set) var stage = ByteStreamStage.undecided

    init(_ socket: Socket) { self.socket = socket }

    var descriptor: Int32 { socket.descriptor }

    mutating func read(into buffer: UnsafeMutableRawPointer, byteCount: Int) -> ByteStreamResult {
        switch stage {
        case .undecided:
            guard case .bytes(1) = socket.read(into: buffer, byteCount: 1) else { return .wouldBlock }
            stage = .handshake
            return .wouldBlockWriting
        case .handshake:
            guard case .bytes(1) = withUnsafeBytes(of: Self.greeting, { socket.write($0) }) else {
                return .wouldBlockWriting
            }
            stage = .open
            return .wouldBlock
        case .open: return socket.read(into: buffer, byteCount: byteCount)
        }
    }

    mutating func write(_ bytes: UnsafeRawBufferPointer) -> ByteStreamResult { socket.write(bytes) }
    func closeForWriting() { socket.closeForWriting() }
    func close() { socket.close() }
}

@Suite struct ByteStreamTests {
    private func withServer(_ body: (Server) async throws -> Void) async throws {
        try await LoopServer.run { try await body($0.server) }
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

    @Test func `A handshake that waits until it can send goes on, however many others do`() async throws {
        var limits = Limits()
        limits.tlsHandshakeTimePerTurnMax = .zero
        limits.tlsHandshakeTimeout = .seconds(3_600)
        try await LoopServer.run(limits: limits) { server in
            var clients: [RawClient] = []
            for _ in 0..<20 {
                let (client, theirs) = try RawClient.pair()
                try client.send([LaggingStream.greeting])
                server.server.adopt(LaggingStream(Socket(owning: theirs)))
                clients.append(client)
            }
            for client in clients {
                #expect(try client.receive(1) == [LaggingStream.greeting])
                let answer = try client.call(Echo.echo, WireKeyValue(key: "a"), returning: WireKeyValue.self)
                #expect(answer.key == "a")
            }
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
