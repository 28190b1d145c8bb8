import Base
import Glibc
import Messages
import Wire

/// A connection that has said HELLO with its API key. One owner, not thread-safe.
///
/// `receive` and `send` do not block; `readFrame` and `flush` do.
final class Connection: SocketLink {
    /// The window of a stream: so large that nobody here has to give credit. With the default of 64 KiB, a stream fell
    /// silent for ever after a snapshot of a thousand revocations.
    private static let windowByteCount = UInt32(Int32.max)

    private let socket: ClientSocket
    /// The server's HELLO.
    private(set) var server = WireHello()
    var input = ByteBuffer()
    var output = ByteBuffer()
    private var nextStream: UInt32 = 1

    /// Connects, and waits for the server's HELLO.
    init(to address: ServerAddress, authorization: Text, from source: String? = nil) throws(BenchError) {
        socket = try ClientSocket(to: address, from: source, into: &input)
        output.appendHello(
            WireHello(
                protocolVersion: 1, frameBytesMax: UInt32(FrameHeader.payloadByteCountMax),
                initialWindow: Self.windowByteCount, software: "postern-bench", authorization: authorization))
        try flush()
        var hello: WireHello?
        try readFrame { header, payload in
            if header.type == .hello { hello = try? WireHello(decoding: payload) }
        }
        guard let hello else {
            throw BenchError(.notReady, "\(address) did not answer HELLO with one: no Postern server?")
        }
        server = hello
    }

    var descriptor: Int32 { socket.descriptor }

    var streamsMax: Int { server.streamsMax == 0 ? .max : Int(server.streamsMax) }

    func receive() -> Transfer { socket.receive(into: &input) }

    func send() -> Transfer { socket.send(from: &output) }

    /// Nil when the ids are used up, after 2^30 requests.
    func takeStream() -> UInt32? {
        guard nextStream <= StreamID.max else { return nil }
        defer { nextStream += 2 }
        return nextStream
    }

    /// Sends all of `output`.
    func flush() throws(BenchError) {
        while !output.isEmpty {
            switch send() {
            case .bytes: continue
            case .wouldBlock: try socket.wait(for: POLLOUT)
            case .failed: throw .system(.failed, "send")
            }
        }
    }

    /// Waits for a frame and passes it to `body`. The frame is valid only until `body` returns.
    func readFrame(_ body: (FrameHeader, UnsafeRawBufferPointer) -> Void) throws(BenchError) {
        while true {
            var taken = false
            takeFrames(atMost: 1) { header, payload in
                body(header, payload)
                taken = true
            }
            if taken { return }
            switch receive() {
            case .bytes(0), .failed: throw BenchError(.failed, "the server closed the connection")
            case .bytes: continue
            case .wouldBlock: try socket.wait(for: POLLIN)
            }
        }
    }
}
