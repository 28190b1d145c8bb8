import Base
import Messages
import PosternAdmin
import PosternClient
import TestSupport
import Testing

/// The feed of what the toggles refuse.
@Suite(.timeLimit(.minutes(2))) struct DenialFeedTests {
    /// Makes a call that is refused, over a connection that is never cut.
    private static func beRefused(_ scene: AdminScene) async {
        await expectRefusal("ADMIN_RESTRICTED_OPERATION") { () throws(Failure) in
            _ = try await AccountsClient(channel: scene.direct).signUp(
                AccountsSignUpRequest(email: "eve@example.com", password: Secret("correct horse")))
        }
    }

    @Test func `Nothing is missed while the connection is gone, and nothing told twice`() async throws {
        try await AdminScene.runThroughProxy { scene, proxy in
            _ = try await scene.tenant.updateSettings(TenantSettingsChange { $0.disabledUserSignup = true })
            var feed = scene.tenant.watchDenials(after: 0).makeAsyncIterator()
            var sequences: [Int64] = []
            for round in 1...4 {
                await Self.beRefused(scene)
                if round > 1 {
                    proxy.sever()
                    await Self.beRefused(scene)
                    sequences.append(try #require(try await feed.next()).sequence)
                }
                sequences.append(try #require(try await feed.next()).sequence)
            }
            #expect(sequences == Array(1...7))
        }
    }

    @Test func `From now on leaves out what was before, also where nothing was`() async throws {
        try await AdminScene.run { scene in
            _ = try await scene.tenant.updateSettings(TenantSettingsChange { $0.disabledUserSignup = true })
            for first in [1, 2] as [Int64] {
                let admin = scene.tenant
                let task = Task {
                    var feed = admin.watchDenials().makeAsyncIterator()
                    return try await feed.next()?.sequence
                }
                // The feed has asked for the newest refusal; later refusals are for the feed to tell.
                let recorder = MethodRecorder(scene.server)
                try await recorder.waitForCalls("Tenants/ListDenials", Int(first))
                await Self.beRefused(scene)
                #expect(try await task.value == first)
            }
        }
    }

    @Test func `A refusal by the server, a cancelled task and a closed channel end it`() async throws {
        try await AdminScene.run { scene in
            #expect(await Self.end(of: scene.project.tenant("nowhere").watchDenials(after: 0)) == "TENANT_NOT_FOUND")
            #expect(await Self.end(of: scene.tenant.watchDenials(after: -2)) == "INVALID_SEQUENCE")
            let feed = scene.tenant.watchDenials()
            let task = Task { await Self.end(of: feed) }
            task.cancel()
            #expect(await task.value == "CANCELLED")
            await scene.channel.shutdown()
            #expect(await Self.end(of: feed) == "CHANNEL_CLOSED")
        }
    }

    private static func end(of feed: DenialFeed) async -> String {
        await reason { () throws(Failure) in for try await _ in feed {} }
    }
}
