import Base
import Messages
import Service
import TestSupport
import Testing
import Transport
import Wire

/// The memory of streams whose client reads nothing: a stream that has to wait makes no message.
@Suite struct UnreadStreamTests {
    private static let streamCount = 40
    private static let ask = GRPCServerReflectionRequest(messageRequest: .fileByFilename("postern/v1/users.proto"))

    private static func question(_ client: RawClient, stream: UInt32) -> [UInt8] {
        client.request(
            "grpc.reflection.v1.ServerReflection/ServerReflectionInfo", ask, stream: stream, kind: .remoteOpen)
    }

    private static func nextData(_ client: RawClient) throws -> RawClient.Frame {
        while true {
            let frame = try client.readFrame()
            if frame.header.type == .data { return frame }
        }
    }

    /// The length of one answer, asked for on a connection of its own.
    private static func answerByteCount(_ server: TestServer) throws -> Int {
        let client = try server.connect()
        defer { client.close() }
        try client.send(question(client, stream: client.nextStream()))
        return try nextData(client).payload.count
    }

    @Test func `Streams of a client that reads nothing do not make messages`() async throws {
        try await withServer(configure: { $0.limits.unreadOutputMax = 16 * 1024 }) { server in
            let memory = server.instance.server.memory
            let answerByteCount = try Self.answerByteCount(server)
            let client = try RawClient(port: server.port, receiveByteCount: 4_096)
            client.apiKey = server.adminKey
            var bytes: [UInt8] = []
            for _ in 0..<Self.streamCount { bytes += Self.question(client, stream: client.nextStream()) }
            try client.send(bytes)
            for _ in 0..<Self.streamCount {
                #expect(try Self.nextData(client).payload.count == answerByteCount)
            }
            // The unread limit and the answer that exceeds it, in a buffer that is twice as large; tasks.
            let bound = 2 * (16 * 1024 + answerByteCount) + Self.streamCount * 5 * 1_024 + 64 * 1_024
            print("answer: \(answerByteCount), peak: \(memory.peakByteCount), bound: \(bound)")
            #expect(Self.streamCount * answerByteCount > 2 * bound)
            #expect(memory.peakByteCount <= bound)
        }
    }
}
