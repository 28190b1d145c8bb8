import Base
import Identity
import Messages
import Service
import TestSupport
import Testing

/// A client of HTTP/2 that only stopped sending gets what it is owed.
@Suite struct HTTP2HalfCloseTests {
    private typealias Frame = RawHTTP2.Frame

    @Test func `Calls that waited for others are begun and answered after the client stopped sending`() async throws {
        try await withServer(configure: { $0.limits.pagesWaitingMax = 2 }) { server in
            let client = try server.connect()
            let photo = Text("https://x/" + String(repeating: "x", count: 2_000))
            for index in 0..<20 {
                let _: UsersCreateResponse = try client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: Text("u\(index)"), photoURL: photo))
            }
            let raw = try RawHTTP2(server, settings: [(4, 1 << 24)])
            let key = server.adminKey.withBytes { "Bearer " + String(decoding: $0, as: UTF8.self) }
            func list(_ stream: UInt32) -> [Frame] {
                [
                    RawHTTP2.request(stream, "/postern.v1.Users/List", [("authorization", key)]),
                    RawHTTP2.message(stream),
                ]
            }
            // The first shows the credential; then more calls may be open.
            try raw.send(list(1))
            _ = try raw.readAnswer(1)
            let streams = (1...20).map { 2 * UInt32($0) + 1 }
            let window = Frame(type: RawHTTP2.windowUpdate, payload: RawHTTP2.bigEndian(1 << 28, 4))
            try raw.send([window] + streams.flatMap(list))
            raw.client.closeForWriting()
            let ends = try raw.readUntilClosed().filter {
                $0.type == RawHTTP2.headers && $0.flags & RawHTTP2.endStream != 0
            }
            #expect(Set(ends.map(\.stream)) == Set(streams))
        }
    }
}
