public import Base
public import Messages
import Wire

/// A server stream on a connection of its own, read message by message.
public struct RawStream<Response: Message> {
    public let client: RawClient
    private let stream: UInt32

    public init(
        _ server: TestServer, _ fullName: String, _ request: some Message, apiKey: Secret? = nil,
        initialWindow: UInt32 = 1 << 20
    ) throws {
        client = try server.connect()
        if let apiKey { client.apiKey = apiKey }
        _ = try client.hello(WireHello(protocolVersion: 1, initialWindow: initialWindow, software: "raw"))
        stream = client.nextStream()
        try client.send(client.request(fullName, request, stream: stream, kind: .remoteClosed))
    }

    /// Grants the server credit for so many more bytes.
    public func grant(_ credit: UInt32) throws {
        var buffer = ByteBuffer()
        ControlFrame.window(stream: stream, credit: credit).append(to: &buffer)
        try client.send(buffer.copyBytes())
    }

    /// The next message; nil when the stream ended well. Throws the failure that ended it.
    public func next() throws -> Response? {
        while true {
            let frame = try client.readFrame()
            switch frame.header.type {
            case .data where frame.header.flags.contains(.noData): return nil
            case .data: return try Response(decoding: frame.payload)
            case .response:
                let envelope = try WireResponse(decoding: frame.payload)
                if let status = envelope.status, status.code != 0 { throw RawClient.failure(status) }
                return nil
            default: continue
            }
        }
    }
}
