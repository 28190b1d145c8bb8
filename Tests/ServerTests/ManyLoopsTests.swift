import Base
import Identity
import Messages
import Service
import TestSupport
import Testing
import Transport

/// A server with as many event loops as a large machine has processors.
@Suite struct ManyLoopsTests {
    private static let longName = Text(String(repeating: "x", count: 2_000))

    /// Each loop might take as much memory at the same moment: 64 times 64 KiB are all there is.
    @Test(.timeLimit(.minutes(2)))
    func `A long request has room although there are many loops`() async throws {
        try await withServer(configure: {
            $0.threads = 64
            $0.limits.connectionMemoryMax = 4 << 20
        }) { server in
            try server.makeTenant("acme")
            let client = try server.client(as: .tenantAdmin, of: "acme")
            // Only a connection that has shown a credential may send such a request.
            let _: UsersCountResponse = try client.call(
                "postern.v1.Users/Count", UsersCountRequest(tenantID: "acme"))
            // The request is read whole before it is refused.
            expectRefusal("TOO_MANY_ITEMS") {
                let _: UsersBatchGetResponse = try client.call(
                    "postern.v1.Users/BatchGet",
                    UsersBatchGetRequest(tenantID: "acme", uids: [Text](repeating: Self.longName, count: 101)))
            }
        }
    }
}
