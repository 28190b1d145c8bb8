import Base
import Messages
import Service
import TestSupport
import Testing

@testable import Identity
@testable import Store

/// Unused anonymous users are deleted when their tenant says so: no other users, and never all at once.
@Suite struct AnonymousExpiryTests {
    private struct Scene {
        let server: TestServer
        let identity: IdentityClient

        init(_ server: TestServer, days: Int64 = 30) throws {
            self.server = server
            self.identity = try IdentityClient(server)
            try identity.setTenant(["enable_anonymous_user", "anonymous_user_expiry_seconds"]) {
                $0.enableAnonymousUser = true
                $0.anonymousUserExpirySeconds = days * 86_400
            }
        }

        /// Lets time pass on both clocks and sweeps.
        func sweep(after duration: Duration) async {
            server.clock.advance(by: duration)
            await server.project.sweep()
        }

        func exists(_ uid: Text) -> Bool { failure { _ = try identity.get(uid) }.reason.isEmpty }
    }

    @Test func `Unused ones go, used ones and those with a way in stay`() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let unused = try #require(try scene.identity.signUp().user?.uid)
            let used = try scene.identity.signUp()
            let upgraded = try scene.identity.signUp()
            _ = try scene.identity.signUp("ada@example.com", linkingTo: upgraded.tokens?.idToken ?? .empty)
            let federated = try scene.identity.signUp()
            _ = try scene.identity.signIn(.google(), linkingTo: federated.tokens?.idToken ?? .empty)
            let byToken = try #require(try scene.identity.signIn(customTokenFor: "by-token").user?.uid)
            let anonymousAndByToken = try #require(try scene.identity.signUp().user?.uid)
            _ = try scene.identity.signIn(customTokenFor: anonymousAndByToken)
            let made: UsersCreateResponse = try scene.identity.client.call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: "by-admin"))
            await scene.sweep(after: .zero)
            await scene.sweep(after: .days(20))
            _ = try scene.identity.refresh(used.tokens?.refreshToken ?? .empty)
            await scene.sweep(after: .days(10))
            #expect(scene.exists(unused))
            await scene.sweep(after: .seconds(1))
            #expect(!scene.exists(unused))
            let others = [used.user?.uid, upgraded.user?.uid, federated.user?.uid, byToken, anonymousAndByToken]
            for uid in others { #expect(scene.exists(uid ?? .empty)) }
            #expect(scene.exists(made.user?.uid ?? .empty))
            #expect(server.project.anonymousExpiry.expiredCount.value == 1)
            await scene.sweep(after: .days(31))
            #expect(!scene.exists(used.user?.uid ?? .empty))
            for uid in others.dropFirst() { #expect(scene.exists(uid ?? .empty)) }
            // The table has no row of a user who is deleted or has a sign-in method.
            let left = try server.project.store.read { try $0.count(Tables.anonymousUsers) }
            #expect(left == 0)
        }
    }

    @Test func `A back end's user who has no other way in any more stays`() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let (identity, anonymous) = (scene.identity, try scene.identity.signUp())
            let uid = try #require(anonymous.user).uid
            _ = try identity.signIn(customTokenFor: uid)
            let linked = try identity.signUp("ada@gmail.com", linkingTo: anonymous.tokens?.idToken ?? .empty)
            _ = try LinkTests.unlink(identity, "password", linked.tokens?.idToken ?? .empty, force: true)
            // The email's owner gets an account of its own.
            _ = try identity.signIn(.google())
            #expect(try identity.get(uid).email.isEmpty)
            await scene.sweep(after: .zero)
            await scene.sweep(after: .days(31))
            #expect(scene.exists(uid))
        }
    }

    /// The server does not see every use of a cookie.
    @Test func `A session cookie counts as used until it ends`() async throws {
        try await withServer { server in
            let scene = try Scene(server, days: 2)
            func makeCookie(_ days: Int64) throws -> (uid: Text, cookie: Text) {
                let made = try scene.identity.signUp()
                let tokens = try #require(made.tokens)
                let cookie: TokensCreateSessionCookieResponse = try scene.identity.client.call(
                    "postern.v1.Tokens/CreateSessionCookie",
                    TokensCreateSessionCookieRequest(idToken: tokens.idToken, validSeconds: days * 86_400))
                return (try #require(made.user?.uid), cookie.sessionCookie)
            }
            let (short, long) = (try makeCookie(1), try makeCookie(10))
            await scene.sweep(after: .zero)
            await scene.sweep(after: .days(3))
            #expect(scene.exists(short.uid))
            await scene.sweep(after: .seconds(1))
            #expect(!scene.exists(short.uid))
            await scene.sweep(after: .days(6))
            let verified: TokensVerifySessionCookieResponse = try scene.identity.client.call(
                "postern.v1.Tokens/VerifySessionCookie",
                TokensVerifySessionCookieRequest(sessionCookie: long.cookie))
            #expect(verified.uid == long.uid)
            await scene.sweep(after: .days(4))
            #expect(!scene.exists(long.uid))
        }
    }

    @Test func `Without an expiry nobody goes`() async throws {
        try await withServer { server in
            let scene = try Scene(server, days: 0)
            let uid = try #require(try scene.identity.signUp().user?.uid)
            await scene.sweep(after: .zero)
            await scene.sweep(after: .days(4_000))
            #expect(scene.exists(uid))
        }
    }

    @Test func `A clock that jumps deletes nobody for an hour, and then so many a sweep`() async throws {
        try await withServer(configure: { $0.limits.anonymousUsersExpiredPerSweep = 3 }) { server in
            let scene = try Scene(server)
            for _ in 0..<8 { _ = try scene.identity.signUp() }
            await scene.sweep(after: .zero)
            await scene.sweep(after: .hours(2))
            func count() throws -> Int { try server.project.store.read { try $0.count(Tables.users) } }
            server.clock.step(by: .days(400))
            // Ten minutes until the server believes the jump, and an hour in which the clock is right.
            for _ in 0..<70 {
                await server.project.sweep()
                server.clock.advance(by: .minutes(1))
            }
            #expect(try count() == 8)
            for expected in [5, 2, 0] {
                await server.project.sweep()
                #expect(try count() == expected)
                server.clock.advance(by: .minutes(1))
            }
        }
    }

    /// The table as one of bytes, to put something into it that is none of its records.
    private static func bytes<Key, Record>(_ table: Table<Key, Record>) -> Table<Key, [UInt8]> {
        Table<Key, [UInt8]>(id: table.id, name: table.name, owner: table.owner, purge: table.purge)
    }

    /// Makes a tenant whose unused anonymous users are deleted after 30 days, and an anonymous user in it.
    static func makeUser(in tenantID: Text, _ server: TestServer) throws -> UserKey {
        let client = try server.connect()
        let _: TenantsCreateResponse = try client.call(
            "postern.v1.Tenants/Create",
            TenantsCreateRequest(
                tenantID: tenantID,
                tenant: Messages.Tenant(enableAnonymousUser: true, anonymousUserExpirySeconds: 30 * 86_400),
                updateMask: ProtobufFieldMask(paths: ["enable_anonymous_user", "anonymous_user_expiry_seconds"])))
        let made: AccountsSignUpResponse = try client.call(
            "postern.v1.Accounts/SignUp", AccountsSignUpRequest(tenantID: tenantID))
        return UserKey(tenantID, made.user?.uid ?? .empty)
    }

    @Test func `A damaged user or tenant does not keep the users of others`() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let uids = try (0..<4).map { _ in try #require(try scene.identity.signUp().user?.uid) }.sorted()
            let damaged = UserKey(.empty, try #require(uids.first))
            let ofBroken = try Self.makeUser(in: "broken", server)
            let ofUnlogged = try Self.makeUser(in: "unlogged", server)
            let ofWhole = try Self.makeUser(in: "whole", server)
            try await server.project.store.write { transaction in
                // The length of a field that is not there. The last one is damage that only a write meets.
                try transaction.put(Self.bytes(Tables.users), damaged, [0x0A, 0x7F])
                try transaction.put(Self.bytes(Tables.tenants), TenantPrefix("broken"), [0x0A, 0x7F])
                try transaction.put(Schema.eventHeads, TenantPrefix("unlogged"), [0])
            }
            await scene.sweep(after: .zero)
            await scene.sweep(after: .days(31))
            for uid in uids.dropFirst() { #expect(!scene.exists(uid)) }
            let exist = try server.project.store.read { transaction in
                try [damaged, ofBroken, ofUnlogged, ofWhole].map { try transaction.exists(Tables.users, $0) }
            }
            #expect(exist == [true, true, true, false])
            #expect(server.project.anonymousExpiry.expiredCount.value == 4)
        }
    }

    @Test(arguments: [-1, 1, 86_399, 315_360_001, Int64.max, Int64.min])
    func `An expiry below a day or above ten years is refused`(seconds: Int64) async throws {
        try await withServer { server in
            expectRefusal("INVALID_DURATION") {
                try server.updateTenant("", ["anonymous_user_expiry_seconds"]) {
                    $0.anonymousUserExpirySeconds = seconds
                }
            }
        }
    }
}
