import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// One tenant's admin wants the store's only writer for himself.
@Suite struct WriterAttackTests {
    private static let streamCount = 16
    private static let batchCount = 6
    private static let usersPerBatch = 500

    /// Imports until the batches are done. Every batch brings new users.
    private static func flood(_ server: TestServer, _ number: Int) throws {
        let client = try server.client(as: .tenantAdmin, of: "flood")
        for batch in 0..<batchCount {
            let users = (0..<usersPerBatch).map { ImportUser(uid: Text("u\(number)-\(batch)-\($0)")) }
            let answer = try ImportTests.importing(client, users, tenantID: "flood")
            #expect(answer.createdCount == usersPerBatch)
        }
        client.close()
    }

    /// How many users were imported while each call of the other tenant waited, in ascending order.
    private static func waits(_ server: TestServer) throws -> [Int] {
        let store = server.project.store
        let client = try server.connect()
        let floods = (0..<streamCount).map { number in
            OSThread(name: "flood") {
                do { try flood(server, number) } catch { Issue.record(error) }
            }
        }
        var waits: [Int] = []
        func count() throws -> Int { try store.read { try $0.count(Tables.users) } }
        let all = streamCount * batchCount * usersPerBatch
        while try count() < all + waits.count, waits.count < 100_000 {
            let before = try count()
            let _: UsersCreateResponse = try client.call(
                "postern.v1.Users/Create", UsersCreateRequest(tenantID: "victim", uid: Text("v\(waits.count)")))
            waits.append(try count() - before - 1)
        }
        for flood in floods { flood.join() }
        return waits.sorted()
    }

    @Test(.timeLimit(.minutes(3)))
    func `Sixteen imports at once do not come before another tenant's change`() async throws {
        try await withServer { server in
            for tenantID in ["flood", "victim"] as [Text] { try server.makeTenant(tenantID) }
            let waits = try Self.waits(server)
            let (half, most) = (waits[waits.count / 2], waits.last ?? 0)
            print("\(waits.count) changes meanwhile: half of them waited for \(half) users at most, all for \(most)")
            // The slices of the batch that runs, of its own, and of the time before the test looks again. A batch of
            // each stream would be 8,000 users.
            #expect(waits.count > 10 && half <= 600 && most <= 2_000)
        }
    }
}
