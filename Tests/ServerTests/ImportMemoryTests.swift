import Base
import Identity
import Messages
import TestSupport
import Testing
import Wire

@testable import Service
@testable import Transport

/// An import keeps no batch that it has answered, and its connection is read while it works on one.
@Suite struct ImportMemoryTests {
    /// A batch of a megabyte and a half, whose only row is refused.
    private static let longBatch = [
        ImportUser(uid: "long", displayName: Text(String(repeating: "x", count: 3 << 19)))
    ]

    /// As long as a stream's window allows.
    private static let halfABatch = [
        ImportUser(uid: "long", displayName: Text(String(repeating: "x", count: 1 << 19)))
    ]

    @Test func `An import goes on behind a batch of more than a megabyte, and keeps none`() async throws {
        try await withServer { server in
            let memory = server.instance.server.memory
            var streams: [ImportTests.Stream] = []
            for number in 0..<8 {
                let client = try server.connect()
                // With a credential a frame may be longer.
                let _: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest())
                // A request without a message opens the stream, and its first batch comes as a message.
                let isFirst = number % 2 == 0
                let stream = try ImportTests.Stream(client, UsersImportRequest(users: isFirst ? Self.longBatch : []))
                if !isFirst { try stream.send(Self.halfABatch) }
                #expect(try stream.answer().rejections.count == 1)
                try stream.send([ImportUser(uid: Text("u\(number)"))])
                #expect(try stream.answer().createdCount == 1)
                streams.append(stream)
            }
            try await until("the memory is given back: \(memory.byteCount)") { memory.byteCount <= 1 << 20 }
            for stream in streams { try stream.end() }
        }
    }
}
