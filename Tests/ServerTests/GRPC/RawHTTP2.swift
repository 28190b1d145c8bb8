import Base
import TestSupport
import Testing

/// A client that sends HTTP/2 byte by byte, right or wrong, and reads the server's frames one by one.
final class RawHTTP2 {
    struct Frame: Equatable {
        var type: UInt8
        var flags: UInt8 = 0
        var stream: UInt32 = 0
        var payload: [UInt8] = []

        /// The code of RST_STREAM; of GOAWAY, its last stream and code.
        var numbers: [UInt32] {
            stride(from: 0, to: payload.count / 4 * 4, by: 4).prefix(2).map { start in
                payload[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) }
            }
        }
    }

    static let (data, headers, priority, reset, settings): (UInt8, UInt8, UInt8, UInt8, UInt8) = (0, 1, 2, 3, 4)
    static let (ping, goAway, windowUpdate, continuation): (UInt8, UInt8, UInt8, UInt8) = (6, 7, 8, 9)
    static let endStream: UInt8 = 1
    static let endHeaders: UInt8 = 4
    static let (protocolError, flowControlError, frameSizeError): (UInt32, UInt32, UInt32) = (1, 3, 6)
    static let (refusedStream, cancel): (UInt32, UInt32) = (7, 8)
    static let (compressionError, enhanceYourCalm): (UInt32, UInt32) = (9, 11)
    static let preface = [UInt8]("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    let client: RawClient
    private var received: [UInt8] = []

    /// Sends the preface and SETTINGS with these entries. `receiveByteCount`: as for `RawClient`.
    init(
        _ server: TestServer, settings entries: [(UInt16, UInt32)] = [], begins: Bool = true,
        receiveByteCount: Int32? = nil
    ) throws {
        client = try RawClient(port: server.port, receiveByteCount: receiveByteCount)
        guard begins else { return }
        let payload = entries.flatMap { id, value in Self.bigEndian(UInt32(id), 2) + Self.bigEndian(value, 4) }
        try client.send(Self.preface + Self.bytes(Frame(type: Self.settings, payload: payload)))
    }

    static func bigEndian(_ value: UInt32, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(value >> UInt32(8 * $0) & 255) }
    }

    static func bytes(_ frame: Frame) -> [UInt8] {
        bigEndian(UInt32(frame.payload.count), 3) + [frame.type, frame.flags] + bigEndian(frame.stream, 4)
            + frame.payload
    }

    func send(_ frames: Frame...) throws { try client.send(frames.flatMap(Self.bytes)) }

    func send(_ frames: [Frame]) throws { try client.send(frames.flatMap(Self.bytes)) }

    /// Fields as HPACK literals that no table keeps (RFC 7541 §6.2.2), without Huffman coding.
    static func block(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { name, value in [0] + text(name) + text(value) }
    }

    private static func text(_ text: String) -> [UInt8] {
        let bytes = [UInt8](text.utf8)
        guard bytes.count >= 127 else { return [UInt8(bytes.count)] + bytes }
        var (length, rest): ([UInt8], Int) = ([127], bytes.count - 127)
        while rest >= 128 {
            length.append(UInt8(rest % 128 + 128))
            rest /= 128
        }
        return length + [UInt8(rest)] + bytes
    }

    static func fields(_ path: String, _ more: [(String, String)] = []) -> [(String, String)] {
        [
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
            ("te", "trailers"), ("content-type", "application/grpc"),
        ] + more
    }

    static func request(
        _ stream: UInt32, _ path: String = "/grpc.health.v1.Health/Check", _ more: [(String, String)] = [],
        flags: UInt8 = endHeaders
    ) -> Frame {
        Frame(type: headers, flags: flags, stream: stream, payload: block(fields(path, more)))
    }

    static func message(_ stream: UInt32, _ content: [UInt8] = [], flags: UInt8 = endStream) -> Frame {
        Frame(type: data, flags: flags, stream: stream, payload: [0] + bigEndian(UInt32(content.count), 4) + content)
    }

    // MARK: Reading

    func readFrame() throws -> Frame {
        while true {
            if received.count >= 9 {
                let count = received[..<3].reduce(0) { $0 << 8 | Int($1) }
                if received.count >= 9 + count {
                    let frame = Frame(
                        type: received[3], flags: received[4],
                        stream: received[5..<9].reduce(0) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF,
                        payload: Array(received[9..<9 + count]))
                    received.removeFirst(9 + count)
                    return frame
                }
            }
            let chunk = try client.receive(65_536)
            if chunk.isEmpty { throw RawClient.RawError.closed }
            received += chunk
        }
    }

    /// The next frame of this type, and of this stream if one is named; others are passed over.
    func read(_ type: UInt8, stream: UInt32? = nil) throws -> Frame {
        while true {
            let frame = try readFrame()
            if frame.type == type, stream == nil || frame.stream == stream { return frame }
        }
    }

    /// Reads until the server closes; returns the frames that came before.
    func readUntilClosed() throws -> [Frame] {
        var frames: [Frame] = []
        while true {
            do { frames.append(try readFrame()) } catch RawClient.RawError.closed { return frames }
        }
    }

    /// The frames of a stream up to its end. If the stream ends well, the last one is a block of headers.
    func readAnswer(_ stream: UInt32) throws -> [Frame] {
        var frames: [Frame] = []
        while true {
            let frame = try readFrame()
            guard frame.stream == stream else { continue }
            frames.append(frame)
            if frame.type == Self.reset { return frames }
            if frame.type <= Self.headers, frame.flags & Self.endStream != 0 { return frames }
        }
    }
}
