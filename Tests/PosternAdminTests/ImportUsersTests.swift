import Base
import Crypto
import Identity
import Messages
import PosternAdmin
import PosternClient
import Store
import TestSupport
import Testing

/// Importing users: batches, the outcome of each row, and going on after a loss.
@Suite(.timeLimit(.minutes(2))) struct ImportUsersTests {
    private static func users(_ range: Range<Int>) -> [ImportUser] {
        range.map { ImportUser(uid: Text("user-\(1_000_000 + $0)"), email: Text("user\($0)@example.com")) }
    }

    /// Rows that come one after the other, and then an error.
    private struct Feed: AsyncSequence, AsyncIteratorProtocol {
        struct Broken: Error {}

        var rows: ArraySlice<ImportUser>

        func makeAsyncIterator() -> Feed { self }

        mutating func next() async throws -> ImportUser? {
            guard let row = rows.popFirst() else { throw Broken() }
            return row
        }
    }

    @Test func `Any number of rows goes in by batches, and every row is accounted for`() async throws {
        try await AdminScene.run { scene in
            var rows = Self.users(0..<1_203)
            rows[700].email = "no email"
            rows[1_100].uid = rows[3].uid
            var checkpoints: [Int64] = []
            let report = try await scene.tenant.importUsers(rows) { checkpoints.append($0.checkpoint) }
            #expect(checkpoints == [500, 1_000, 1_203])
            #expect(report.createdCount == 1_201)
            #expect(report.rejections.map(\.index) == [700, 1_100])
            #expect(report.rejections.map(\.reason) == ["INVALID_EMAIL", "DUPLICATE_LOCAL_ID"])
            #expect(try await scene.tenant.listUsers(pageSize: 1_000).all().count == 1_201)

            let again = try await scene.tenant.importUsers(Self.users(0..<10), onConflict: .skip)
            #expect(again.skippedCount == 10)
            let replaced = try await scene.tenant.importUsers(Self.users(0..<10), onConflict: .replace)
            #expect(replaced.replacedCount == 10)
            #expect(try await scene.tenant.importUsers([]) == ImportReport())
        }
    }

    @Test func `Rows that are large make smaller batches`() async throws {
        try await AdminScene.run { scene in
            var rows = Self.users(0..<400)
            for index in rows.indices {
                rows[index].photoURL = Text("https://example.com/" + String(repeating: "x", count: 2_000))
                rows[index].providers = (0..<20).map {
                    ProviderInfo(providerID: Text("oidc.p\($0)"), rawID: Text("\(index)"))
                }
            }
            var checkpoints: [Int64] = []
            let report = try await scene.tenant.importUsers(rows) { checkpoints.append($0.checkpoint) }
            #expect(report.createdCount == 400)
            #expect(checkpoints.count > 1)
        }
    }

    @Test func `A row that no message can hold is refused by its index, and the import goes on`() async throws {
        try await AdminScene.run { scene in
            var rows = Self.users(0..<1_203)
            for index in [0, 600, 601, 1_202] {
                rows[index].providers = (0..<1_100).map { ProviderInfo(providerID: "oidc.p", rawID: Text("\($0)")) }
            }
            rows[601].providers = []
            rows[601].customClaimsJSON = [UInt8](repeating: 0x20, count: 5_000_000)
            // What the server refuses behind such a row has its own index.
            rows[700].email = "no email"
            var checkpoints: [Int64] = []
            let report = try await scene.tenant.importUsers(rows) { checkpoints.append($0.checkpoint) }
            #expect(report.createdCount == 1_198 && report.checkpoint == 1_203)
            #expect(checkpoints == [1, 501, 600, 601, 602, 1_102, 1_202, 1_203])
            let refused = report.rejections
            let uids = [0, 600, 601, 700, 1_202].map { rows[$0].uid }
            #expect(refused.map(\.index) == [0, 600, 601, 700, 1_202] && refused.map(\.uid) == uids)
            let reasons = ["MESSAGE_LIMIT", "MESSAGE_LIMIT", "MESSAGE_TOO_LARGE", "INVALID_EMAIL", "MESSAGE_LIMIT"]
            #expect(refused.map(\.reason.string) == reasons)
            #expect(try await scene.tenant.listUsers(pageSize: 1_000).all().count == 1_198)
        }
    }

    @Test func `After a lost connection the unsettled rows are sent again`() async throws {
        try await AdminScene.runThroughProxy { scene, proxy in
            let rows = Self.users(0..<5_000)
            var cuts = 0
            let report = try await scene.tenant.importUsers(rows, onConflict: .skip) { report in
                guard cuts < 2, report.checkpoint >= 1_000 * Int64(cuts + 1) else { return }
                cuts += 1
                proxy.sever()
            }
            #expect(cuts == 2)
            #expect(report.checkpoint == 5_000)
            #expect(report.createdCount + report.skippedCount == 5_000)
            #expect(report.rejections.isEmpty)
            #expect(try await scene.tenant.listUsers(pageSize: 1_000).all().count == 5_000)
        }
    }

    @Test(arguments: [ImportConflict.skip, .replace])
    func `An import does not go on in a store that was restored meanwhile`(_ conflict: ImportConflict) async throws {
        try await AdminScene.runThroughProxy { scene, proxy in
            let rows = Self.users(0..<5_000)
            var isCut = false
            let failure = await #expect(throws: Failure.self) {
                try await scene.tenant.importUsers(rows, onConflict: conflict) { report in
                    guard !isCut, report.checkpoint >= 1_000 else { return }
                    isCut = true
                    // A restore begins an epoch, and with it another history.
                    try? scene.server.project.store.writeBlocking { try $0.beginEpoch(.system) }
                    proxy.sever()
                }
            }
            #expect(isCut && failure?.reason == "STREAM_ENDED" && failure?.code == .aborted)
            #expect(failure?.metadataValue("checkpoint") == "0", "\(String(describing: failure))")
            let report = try await scene.tenant.importUsers(rows, onConflict: .skip)
            #expect(report.createdCount + report.skippedCount == 5_000)
        }
    }

    @Test func `Where a row sent again would be its own duplicate, the loss is thrown with the checkpoint`()
        async throws
    {
        try await AdminScene.runThroughProxy { scene, proxy in
            let rows = Self.users(0..<5_000)
            var settled = ImportReport()
            let failure = await #expect(throws: Failure.self) {
                try await scene.tenant.importUsers(rows) { report in
                    settled = report
                    if report.checkpoint == 1_000 { proxy.sever() }
                }
            }
            #expect(failure?.reason == "CONNECTION_LOST")
            let checkpoint = try #require(failure?.metadataValue("checkpoint").flatMap { Int($0) })
            #expect(Int64(checkpoint) == settled.checkpoint && checkpoint >= 1_000)
            let rest = try await scene.tenant.importUsers(rows[checkpoint...], onConflict: .skip)
            #expect(rest.createdCount + rest.skippedCount == Int64(5_000 - checkpoint))
            #expect(try await scene.tenant.listUsers(pageSize: 1_000).all().count == 5_000)
        }
    }

    @Test func `A cancelled import ends, and says how far it got`() async throws {
        try await AdminScene.run { scene in
            let admin = scene.tenant
            let task = Task {
                do throws(Failure) {
                    _ = try await admin.importUsers(Self.users(0..<5_000), onConflict: .skip) { _ in
                        withUnsafeCurrentTask { $0?.cancel() }
                    }
                    return Failure(.ok, "", "")
                } catch {
                    return error
                }
            }
            let failure = await task.value
            #expect(failure.reason == "CANCELLED")
            #expect(failure.metadataValue("checkpoint").flatMap { Int($0) } ?? 0 >= 500)
        }
    }

    @Test func `What the server refuses is thrown`() async throws {
        try await AdminScene.run { scene in
            let spec = PasswordHashSpec(algorithm: .firebaseScrypt(FirebaseScryptSpec(rounds: 99)))
            await expectRefusal("INVALID_HASH_SPEC") { () throws(Failure) in
                _ = try await scene.tenant.importUsers(Self.users(0..<3), spec: spec, onConflict: .skip)
            }
        }
    }

    @Test func `When the rows break off, those before are settled and the reason is thrown as it is`() async throws {
        try await AdminScene.run { scene in
            var settled = ImportReport()
            await #expect(throws: Feed.Broken.self) {
                try await scene.tenant.importUsers(Feed(rows: Self.users(0..<700)[...])) { settled = $0 }
            }
            #expect(settled.checkpoint == 700 && settled.createdCount == 700)
        }
    }
}
