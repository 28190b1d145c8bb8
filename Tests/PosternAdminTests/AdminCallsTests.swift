import Base
import Messages
import PosternClient
import Service
import TestSupport
import Testing

@testable import PosternAdmin

/// What the admins do with requests and answers besides passing them on.
@Suite(.timeLimit(.minutes(2))) struct AdminCallsTests {
    @Test func `A lost answer to a change is asked for again, and the change is made once`() async throws {
        try await AdminScene.runThroughProxy(methods: ["Create", "Delete"]) { scene, proxy in
            _ = try await scene.project.serverInfo()
            proxy.cutNextAnswer(to: "Create")
            let user = try await scene.tenant.createUser(email: "ada@example.com")
            #expect(proxy.requestCount("Create") == 2)
            #expect(try await scene.tenant.listUsers().all().map(\.uid) == [user.uid])
            proxy.cutNextAnswer(to: "Delete")
            try await scene.tenant.deleteUser(user.uid)
            #expect(proxy.requestCount("Delete") == 2)
        }
    }

    @Test func `A change over a revision whose answer was lost is not refused for its own revision`() async throws {
        try await AdminScene.runThroughProxy(methods: ["Update"]) { scene, proxy in
            let before = try await scene.tenant.settings()
            proxy.cutNextAnswer(to: "Update")
            let changed = try await scene.tenant.updateSettings(
                TenantSettingsChange { $0.displayName = "Acme" }, ifRevision: before.revision)
            #expect(proxy.requestCount("Update") == 2)
            #expect(changed.displayName == "Acme" && changed.revision == before.revision + 1)
        }
    }

    @Test func `Each page of a change has a key of its own, and a repeat gets the same answers`() async throws {
        try await AdminScene.run { scene in
            for number in 0..<501 { _ = try await scene.tenant.createUser(uid: Text("user-\(number)")) }
            let options = CallOptions(idempotencyKey: "off")
            for _ in 0..<2 {
                let done = try await scene.tenant.updateUsers(where: nil, disabled: true, options: options)
                #expect(done.changedCount == 501)
            }
            await expectRefusal("IDEMPOTENCY_KEY_REUSED") { () throws(Failure) in
                _ = try await scene.tenant.updateUsers(where: nil, disabled: false, options: options)
            }
        }
    }

    @Test func `The caller's key is the one that is sent`() async throws {
        try await AdminScene.run { scene in
            let options = CallOptions(idempotencyKey: "once")
            let first = try await scene.tenant.createUser(email: "ada@example.com", options: options)
            let again = try await scene.tenant.createUser(email: "ada@example.com", options: options)
            #expect(again == first)
            await expectRefusal("IDEMPOTENCY_KEY_REUSED") { () throws(Failure) in
                _ = try await scene.tenant.createUser(email: "bob@example.com", options: options)
            }
        }
    }

    @Test func `Changes by an administrator always carry a key: they are about no end user's share`() async throws {
        try await withServer(configure: { $0.limits.idempotencyRecordsPerSubjectMax = 1 }) { server in
            let channel = try Channel(address: "127.0.0.1:\(server.port)", credentials: .apiKey(server.adminKey))
            let admin = TenantAdmin(channel: channel, tenantID: "")
            for uid in ["a", "b", "c"] as [Text] { _ = try await admin.createUser(uid: uid) }
            #expect(try await admin.listUsers().all().map(\.uid) == ["a", "b", "c"])
            await channel.shutdown()
        }
    }

    @Test func `A list is read page by page, and anew by each iteration`() async throws {
        try await AdminScene.run { scene in
            for number in 0..<7 { _ = try await scene.tenant.createUser(uid: Text("user-\(number)")) }
            let users = scene.tenant.listUsers(pageSize: 3)
            for _ in 0..<2 {
                var uids: [String] = []
                for try await user in users { uids.append(user.uid.string) }
                #expect(uids == (0..<7).map { "user-\($0)" })
            }
            var iterator = users.makeAsyncIterator()
            for _ in 0..<7 { _ = try await iterator.next() }
            #expect(try await iterator.next() == nil)
            #expect(try await iterator.next() == nil)
        }
    }

    @Test func `A user who is not there is USER_NOT_FOUND, a tenant TENANT_NOT_FOUND`() async throws {
        try await AdminScene.run { scene in
            let admin = scene.tenant
            await expectRefusal("USER_NOT_FOUND") { () throws(Failure) in _ = try await admin.getUser("nobody") }
            await expectRefusal("USER_NOT_FOUND") { () throws(Failure) in
                _ = try await admin.getUserByEmail("no@example.com")
            }
            let nowhere = scene.project.tenant("nowhere")
            await expectRefusal("TENANT_NOT_FOUND") { () throws(Failure) in _ = try await nowhere.listUsers().all() }
        }
    }

    @Test func `A lifetime that is over is refused, not taken for the default`() async throws {
        try await AdminScene.run { scene in
            for lifetime in [Duration.zero, .seconds(-1)] {
                await expectRefusal("INVALID_DURATION") { () throws(Failure) in
                    _ = try await scene.tenant.createCustomToken("ada", lifetime: lifetime)
                }
            }
            #expect(Duration.milliseconds(1).secondsRoundedUp == 1)
            #expect(Duration.seconds(2).secondsRoundedUp == 2)
        }
    }
}
