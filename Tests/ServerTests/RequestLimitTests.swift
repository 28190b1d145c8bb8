import Base
import Messages
import TestSupport
import Testing
import Wire

/// Requests that are as large as they may be, and one larger.
@Suite struct RequestLimitTests {
    @Test(arguments: [(0, false), (1, true), (256, true), (257, false)])
    func `An idempotency key has 1 to 256 bytes`(byteCount: Int, isTaken: Bool) async throws {
        try await withServer { server in
            let client = try server.connect()
            let key = OutgoingMetadata.Entry(
                key: "idempotency-key", value: Text(String(repeating: "k", count: byteCount)))
            expectRefusal(isTaken ? "" : "INVALID_IDEMPOTENCY_KEY") {
                let _: UsersCreateResponse = try client.call(
                    "postern.v1.Users/Create", UsersCreateRequest(uid: "ada"), metadata: [key])
            }
        }
    }

    @Test func `Users are asked for by up to a hundred names of each kind at once`() async throws {
        try await withServer { server in
            let client = try server.connect()
            func get(_ counts: [Int]) throws -> UsersBatchGetResponse {
                try client.call(
                    "postern.v1.Users/BatchGet",
                    UsersBatchGetRequest(
                        uids: (0..<counts[0]).map { Text("u\($0)") },
                        emails: (0..<counts[1]).map { Text("u\($0)@example.com") },
                        phoneNumbers: (0..<counts[2]).map { Text("+1415555\(1_000 + $0)") },
                        identities: (0..<counts[3]).map {
                            ProviderIdentity(providerID: "google.com", rawID: Text("g\($0)"))
                        }))
            }
            #expect(try get([100, 100, 100, 100]).notFound.count == 400)
            for kind in 0..<4 {
                var counts = [0, 0, 0, 0]
                counts[kind] = 101
                expectRefusal("TOO_MANY_ITEMS") { _ = try get(counts) }
            }
        }
    }
}
