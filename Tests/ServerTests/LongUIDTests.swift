import Base
import Identity
import Messages
import TestSupport
import Testing

/// Refused rows are named, but an answer does not grow with the uids of a request: it would be above the size of a
/// frame.
@Suite struct LongUIDTests {
    /// What an answer may take: a part of a frame.
    private static let byteCountMax = 256 * 1024

    private static func uids(_ count: Int, byteCount: Int) -> [Text] {
        (0..<count).map { Text("u\($0)" + String(repeating: "é", count: byteCount / 2)) }
    }

    /// A client whose frames may be as long as those of a caller.
    private static func connect(_ server: TestServer) throws -> RawClient {
        let client = try server.connect()
        let _: UsersListResponse = try client.call("postern.v1.Users/List", UsersListRequest())
        return client
    }

    private static func expectShort(_ named: [Text], of uids: [Text]) {
        #expect(named.count == uids.count)
        for (name, uid) in zip(named, uids) {
            // The cut is before a character.
            #expect((127...128).contains(name.byteCount) && uid.bytes.starts(with: name.bytes))
        }
    }

    @Test func `An import names rows with uids that are too long by their beginnings`() async throws {
        try await withServer { server in
            let uids = Self.uids(500, byteCount: 8_200)
            let client = try Self.connect(server)
            let answer = try ImportTests.importing(client, uids.map { ImportUser(uid: $0) })
            #expect(answer.rejections.allSatisfy { $0.reason == "INVALID_UID" } && answer.checkpoint == 500)
            #expect(answer.encoded().count < Self.byteCountMax)
            Self.expectShort(answer.rejections.map(\.uid), of: uids)
        }
    }

    @Test func `So does a deletion of many`() async throws {
        try await withServer { server in
            let uids = Self.uids(1_000, byteCount: 4_000)
            let client = try Self.connect(server)
            let answer: UsersBatchDeleteResponse = try client.call(
                "postern.v1.Users/BatchDelete", UsersBatchDeleteRequest(uids: uids))
            #expect(answer.deletedCount == 0 && answer.encoded().count < Self.byteCountMax)
            Self.expectShort(answer.rejections.map(\.uid), of: uids)
        }
    }
}
