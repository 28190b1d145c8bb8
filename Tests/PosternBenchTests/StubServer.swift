import Base
import Glibc
import Messages
import Synchronization
import TestSupport
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
        let (listener, port) = boundSocket()
        try #require(listen(listener, 16) == 0)
        address = try ServerAddress(parsing: "127.0.0.1:\(port)")
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
