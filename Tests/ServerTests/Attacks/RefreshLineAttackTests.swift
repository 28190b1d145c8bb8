import Base
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing
import Wire

/// One tenant's app refreshes faster than the server can write.
@Suite struct RefreshLineAttackTests {
    /// Holds the writer while `body` runs.
    private static func holdingWriter(of server: TestServer, _ body: () throws -> Void) throws {
        let (entered, opened) = (Semaphore(), Semaphore())
        try server.project.store.write { _ in
            entered.signal()
            opened.wait()
        } completion: { _ in
        }
        entered.wait()
        defer { opened.signal() }
        try body()
    }

    /// The server's own writes take places without end. Refreshes are no mutations, but are not the server's.
    @Test func `Refreshes wait in their tenant's line, which has no more than half of the places`() async throws {
        try await withServer(configure: { $0.limits.writeQueueMax = 8 }) { server in
            let users = try IdentityClient(server)
            // Changes of one user wait for each other before they wait for the writer.
            let requests = try (0..<8).map { number in
                let made = try users.signUp(Text("user\(number)@example.com"))
                return TokensRefreshRequest(refreshToken: try #require(made.tokens).refreshToken)
            }
            let client = try server.connect()
            _ = try client.hello()
            var first: Failure?
            try Self.holdingWriter(of: server) {
                for request in requests {
                    let stream = client.nextStream()
                    try client.send(client.request("postern.v1.Tokens/Refresh", request, stream: stream))
                }
                while first == nil {
                    let frame = try client.readFrame()
                    guard frame.header.type == .response else { continue }
                    let response = try WireResponse(decoding: frame.payload)
                    let status = try #require(response.status)
                    first = RawClient.failure(status)
                }
            }
            #expect(first?.reason == "SERVER_OVERLOADED")
        }
    }
}
