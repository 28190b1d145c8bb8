import Base
import Glibc
import Messages
import Synchronization
import Testing
import Wire

@testable import PosternBench

/// A TCP server that answers HELLO, and then each batch of requests as `answer` says. Ends when its connections do.
final class StubServer: Sendable {
    /// Appends answers for the requests that came together; false closes the connection.
    typealias Answer = @Sendable ([UInt32], inout ByteBuffer) -> Bool

    let address: ServerAddress
    private let threads: [OSThread]

    /// Accepts `connections` connections, a thread each.
    init(connections: Int, answer: @escaping Answer) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        try #require(isListening)
        address = try ServerAddress(parsing: "127.0.0.1:\(UInt16(bigEndian: name.sin_port))")
        let open = Mutex(connections)
        threads = (0..<connections).map { _ in
            OSThread(name: "stub") {
                let descriptor = accept(listener, nil, nil)
                if open.withLock({
                    $0 -= 1; return $0 == 0
                }) {
                    close(listener)
                }
                Self.serve(descriptor, answer)
                close(descriptor)
            }
        }
    }

    /// Waits for the clients to go.
    func finish() { for thread in threads { thread.join() } }

    private static func serve(_ descriptor: Int32, _ answer: Answer) {
        var input = ByteBuffer()
        while true {
            let count = recv(descriptor, input.reserve(65_536), 65_536, 0)
            guard count > 0 else { return }
            input.commit(count)
            var output = ByteBuffer()
            var streams: [UInt32] = []
            while let header = FrameHeader.read(input.readable),
                input.readableByteCount >= FrameHeader.byteCount + Int(header.payloadByteCount)
            {
                if header.type == .hello { output.appendHello(WireHello(protocolVersion: 1, streamsMax: 64)) }
                if header.type == .request { streams.append(header.stream) }
                input.consume(FrameHeader.byteCount + Int(header.payloadByteCount))
            }
            if !streams.isEmpty, !answer(streams, &output) { return }
            while !output.isEmpty {
                let sent = send(descriptor, output.readable.baseAddress, output.readableByteCount, Int32(MSG_NOSIGNAL))
                guard sent > 0 else { return }
                output.consume(sent)
            }
        }
    }
}
