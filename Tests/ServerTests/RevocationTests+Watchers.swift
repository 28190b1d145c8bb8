import Base
import Crypto
import Identity
import Messages
import Reactor
import Store
import TestSupport
import Testing

@testable import Service

/// What each watcher of revocations is told.
extension RevocationTests {
    @Test func everyTenantHasItsOwnFeedAndAKeyForAllSeesAll() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let own = try client.signUp("ada@example.com").user!.uid
            let made: AccountsSignUpResponse = try client.client.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(tenantID: "acme", email: "ada@example.com", password: Secret("correct horse")))
            let acme = try Self.watch(server, tenantID: "acme")
            let all = try Self.watch(server, anyTenant: true)
            for stream in [acme, all] { _ = try Self.nextBatch(stream) }
            _ = try Self.revoke(client, own)
            let _: UsersRevokeTokensResponse = try client.client.call(
                "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(tenantID: "acme", uid: made.user!.uid))
            #expect(try Self.nextBatch(acme).revocations.map(\.tenantID) == ["acme"])
            var seen: [Text] = []
            while seen.count < 2 { seen += try Self.nextBatch(all).revocations.map(\.tenantID) }
            #expect(seen == ["", "acme"])
        }
    }

    @Test func aKeyOfOneTenantSeesNoOther() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let made: ProjectCreateApiKeyResponse = try client.client.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .verifier, scope: Scope(tenants: .tenantID("acme"))))
            let _: TenantsCreateResponse = try client.client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "other"))
            expectRefusal("INSUFFICIENT_PERMISSION") {
                _ = try Self.watch(server, tenantID: "other", apiKey: made.secretKey).next()
            }
            let streams = try [false, true].map {
                try Self.watch(server, anyTenant: $0, apiKey: made.secretKey)
            }
            for stream in streams {
                #expect(try Self.nextBatch(stream).scope?.tenants == .tenantID("acme"))
            }
            let uid = try client.signUp("ada@example.com").user!.uid
            _ = try Self.revoke(client, uid)
            try client.setTenant(["disable_auth"]) { $0.disableAuth = true }
            let _: TenantsDeleteResponse = try client.client.call(
                "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "acme"))
            for stream in streams {
                #expect(try Self.nextBatch(stream).revocations.map(\.kind) == [.tenantDeleted])
            }
        }
    }

    @Test func aTenantThatIsSwitchedOffIsInTheFeedAndInEverySnapshot() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let stream = try Self.watch(server)
            _ = try Self.nextBatch(stream)
            try client.setTenant(["disable_auth"]) { $0.disableAuth = true }
            #expect(try Self.nextBatch(stream).revocations.map(\.kind) == [.tenantDisabled])
            // Setting the same value again is not announced.
            try client.setTenant(["disable_auth"]) { $0.disableAuth = true }
            // The age of a row counts from the time at which a sweep with a proven clock has seen it.
            server.clock.advance(by: .minutes(11))
            await server.project.sweep()
            server.clock.advance(by: .hours(24 * 30))
            await server.project.sweep()
            for anyTenant in [false, true] {
                let snapshot = try Self.nextBatch(try Self.watch(server, anyTenant: anyTenant))
                #expect(snapshot.revocations.map(\.kind) == [.tenantDisabled])
            }
            try client.setTenant(["disable_auth"]) { $0.disableAuth = false }
            #expect(try Self.nextBatch(stream).revocations.map(\.kind) == [.tenantEnabled])
        }
    }

    @Test func aHeartbeatTellsHowFarTheFeedIs() async throws {
        try await withServer { server in
            let stream = try Self.watch(server)
            let snapshot = try Self.nextBatch(stream)
            server.clock.advance(by: .seconds(77))
            var beat = try #require(try stream.next())
            let now = server.clock.clock.now()
            let earliest = now - TestEngine.stalenessMax
            while beat.timeMicros < earliest.microseconds { beat = try #require(try stream.next()) }
            #expect(beat.timeMicros <= now.microseconds)
            #expect(beat.revocations.isEmpty && beat.cursor == snapshot.cursor)
            expectRefusal("INVALID_HEARTBEAT") {
                let stream = try Stream(
                    server, "postern.v1.Tokens/WatchRevocations", TokensWatchRevocationsRequest(heartbeatSeconds: 301))
                _ = try stream.next()
            }
        }
    }

    @Test func aLongSnapshotLetsTheLoopGoOnAfterEachMessage() async throws {
        try await withServer { server in
            try await RevocationTests.fillLog(of: server)
            let carrier = MemoryCarrier(router: server.instance.router, loop: server.instance.loops.loops[0])
            let key = server.adminKey.bearer
            let read = try await carrier.readStream(
                "postern.v1.Tokens/WatchRevocations", TokensWatchRevocationsRequest().encoded(), authorization: key,
                answersMax: 3)
            #expect(read == (3, 1))
        }
    }

    @Test func manyWatchersAreEachToldOnce() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uids = try (0..<5).map { try client.signUp(Text("user\($0)@example.com")).user!.uid }
            let streams = try (0..<200).map { _ in try Self.watch(server) }
            for stream in streams { _ = try Self.nextBatch(stream) }
            // Half of the watchers leave: the server does not wait for them.
            for stream in streams[100...] { stream.client.close() }
            for uid in uids { _ = try Self.revoke(client, uid) }
            for stream in streams[..<100] {
                var seen: [Text] = []
                while seen.count < uids.count { seen += try Self.nextBatch(stream).revocations.map(\.uid) }
                #expect(seen == uids)
            }
        }
    }

    @Test func aRevokedKeyIsToldNothingMore() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made: ProjectCreateApiKeyResponse = try client.client.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .verifier, scope: Scope(tenants: .all(true))))
            let stream = try Self.watch(server, apiKey: made.secretKey)
            _ = try Self.nextBatch(stream)
            let _: ProjectRevokeApiKeyResponse = try client.client.call(
                "postern.v1.Project/RevokeApiKey",
                ProjectRevokeApiKeyRequest(apiKeyID: made.apiKey?.apiKeyID ?? .empty))
            expectRefusal("CALLER_UNAUTHENTICATED") {
                while try stream.next() != nil {}
            }
        }
    }
}
