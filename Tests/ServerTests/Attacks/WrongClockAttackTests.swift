import Base
import Crypto
import Identity
import JSON
import Messages
import Rules
import Service
import Store
import TestSupport
import Testing
import Tokens

/// Somebody sets the wall clock wrong: nobody gets in by that, and nothing that was acknowledged is lost.
@Suite struct WrongClockAttackTests {
    private static let email: Text = "ada@example.com"

    /// Proves the clock: ten minutes pass in which it is right.
    private static func prove(_ server: TestServer) async {
        server.clock.advance(by: .minutes(11))
        await server.project.sweep()
        #expect(server.project.time.isProven)
    }

    /// Sets the wall clock and lets the server look at it.
    private static func step(_ server: TestServer, _ duration: Duration) async {
        server.clock.step(by: duration)
        server.project.checkClock()
    }

    private static func snapshot(_ server: TestServer) throws -> [Revocation] {
        let stream = try RawStream<TokensWatchRevocationsResponse>(
            server, "postern.v1.Tokens/WatchRevocations",
            TokensWatchRevocationsRequest(heartbeatSeconds: 1), apiKey: nil)
        defer { stream.client.close() }
        return try stream.next()?.revocations ?? []
    }

    private static func revoke(_ client: IdentityClient, _ uid: Text) throws {
        let _: UsersRevokeTokensResponse = try client.client.call(
            "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid))
    }

    // MARK: Revocations

    @Test(arguments: [Duration.zero - .hours(3), .days(15), .days(365)], [Duration.minutes(1), .minutes(9)])
    func `A snapshot leaves out no live revocation, whatever the clock did since`(
        step: Duration, lasting: Duration
    ) async throws {
        for isProven in [true, false] {
            try await withServer { server in
                let client = try IdentityClient(server)
                let uids = try (0..<3).map { try client.signUp(Text("user\($0)@example.com")).user!.uid }
                if isProven { await Self.prove(server) }
                try Self.revoke(client, uids[0])
                await Self.step(server, step)
                try Self.revoke(client, uids[1])
                await server.project.sweep()
                server.clock.advance(by: lasting)
                #expect(Set(try Self.snapshot(server).map(\.uid)) == Set(uids[..<2]))
                await Self.step(server, .zero - step)
                try Self.revoke(client, uids[2])
                await server.project.sweep()
                let revocations = try Self.snapshot(server)
                #expect(Set(revocations.map(\.uid)) == Set(uids), "proven: \(isProven)")
                #expect(revocations.map(\.timeMicros) == revocations.map(\.timeMicros).sorted())
            }
        }
    }

    // MARK: Tokens that count once

    @Test(arguments: [Duration.hours(3), .minutes(20), .seconds(20)])
    func `A used refresh token is not young because the clock was set back`(passed: Duration) async throws {
        // A clock that is looked at each second is proven after ten minutes.
        for isProven in passed < .minutes(10) ? [true, false] : [true] {
            try await withServer { server in
                let client = try IdentityClient(server)
                if isProven { await Self.prove(server) }
                let stolen = try client.signUp(Self.email).tokens!.refreshToken
                _ = try client.refresh(stolen)
                server.clock.advance(by: passed)
                await Self.step(server, .zero - passed)
                expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(stolen) }
            }
        }
    }

    /// A custom token by a back end whose clock is right.
    private static func token(_ backEnd: BackEnd, _ id: Text) -> Text {
        backEnd.token(backEnd.claims.with("jti", .string(id)))
    }

    @Test func `A used custom token does not sign in again after a jump of two hours and back`() async throws {
        for isProven in [true, false] {
            try await withServer { server in
                let backEnd = try BackEnd(server)
                if isProven { await Self.prove(server) }
                let token = Self.token(backEnd, "one")
                _ = try backEnd.signIn(token)
                await Self.step(server, .hours(2))
                await server.project.sweep()
                server.clock.advance(by: .minutes(1))
                await server.project.sweep()
                await Self.step(server, .zero - .hours(2))
                #expect(backEnd.refusal(token).metadata("cause") == "USED")
                // The jump is over, and locks nobody out.
                _ = try backEnd.signIn(Self.token(backEnd, "two"))
            }
        }
    }

    /// The clock was wrong for so long that it was believed, and what had expired by it is deleted. An operator sets
    /// the clock right: what was used before stays used, and new tokens work after five minutes.
    @Test func `What was used stays used when an operator lowers the clock`() async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            let left = try await withServer(directory: directory, clock: clock, masterKey: masterKey) { server in
                let backEnd = try BackEnd(server)
                await Self.prove(server)
                let token = Self.token(backEnd, "one")
                _ = try backEnd.signIn(token)
                await Self.step(server, .hours(2))
                clock.advance(by: .minutes(11))
                server.project.checkClock()
                clock.advance(by: .minutes(11))
                await server.project.sweep()
                #expect(try server.project.store.read { try $0.count(Tables.usedTokenIDs) } == 0)
                _ = try IdentityClient(server).signUp(Self.email)
                return (token, server.adminKey, clock.clock.now())
            }
            clock.step(by: .zero - .hours(2))
            // Without the operator's consent the time goes on from the store's.
            try await withServer(directory: directory, clock: clock, masterKey: masterKey, adminKey: left.1) {
                server in
                let backEnd = try BackEnd(server, id: "second")
                let time = server.project.time
                #expect(time.isWrong && time.now() >= left.2 - TimeKeeping.markRoughness)
                #expect(backEnd.refusal(left.0).metadata("cause") == "EXPIRED")
            }
            try await withServer(
                directory: directory, clock: clock, masterKey: masterKey, adminKey: left.1,
                configure: { $0.acceptsClock = true }
            ) { server in
                #expect(server.project.time.isProven && server.project.clock.now() == clock.clock.now())
                let backEnd = try BackEnd(server, id: "third")
                #expect(backEnd.refusal(left.0).metadata("cause") == "USED")
                clock.advance(by: .minutes(6))
                _ = try backEnd.signIn(Self.token(backEnd, "two"))
            }
            // The mark is lowered: the next start needs no consent.
            try await withServer(directory: directory, clock: clock, masterKey: masterKey, adminKey: left.1) {
                #expect(!$0.project.time.isWrong && $0.project.clock.now() >= clock.clock.now())
            }
        }
    }

    // MARK: What is kept

    @Test(arguments: [true, false])
    func `A year ahead for a minute sweeps nothing, also over a restart`(restarts: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let (clock, masterKey) = (ManualClock(), MasterKey.generate(random: .system))
            let (refreshToken, adminKey) = try await withServer(
                directory: directory, clock: clock, masterKey: masterKey
            ) { server in
                await Self.prove(server)
                let made = try IdentityClient(server).signUp(Self.email).tokens!.refreshToken
                clock.step(by: .days(365))
                if !restarts { await server.project.sweep() }
                return (made, server.adminKey)
            }
            try await withServer(directory: directory, clock: clock, masterKey: masterKey, adminKey: adminKey) {
                server in
                for _ in 0..<6 {
                    clock.advance(by: .seconds(10))
                    await server.project.sweep()
                }
                #expect(server.project.sweepsPutOff.value >= 6)
                await Self.step(server, .zero - .days(365))
                let client = try IdentityClient(server)
                #expect(try client.refresh(refreshToken).outcome == .rotated)
                await Self.prove(server)
                _ = try client.signIn(Self.email)
            }
        }
    }

    @Test func `Waits and quotas go by what passes`() async throws {
        for step in [Duration.hours(2), .days(365), .zero - .hours(2), .zero - .days(365)] {
            try await withServer { server in
                let client = try IdentityClient(server)
                _ = try client.signUp(Self.email)
                var refused = ""
                for _ in 0..<20 where refused != "TOO_MANY_ATTEMPTS_TRY_LATER" {
                    refused = failure { _ = try client.signIn(Self.email, password: "wrong") }.reason
                }
                #expect(refused == "TOO_MANY_ATTEMPTS_TRY_LATER")
                for _ in 0..<5 { try client.sendOob(.passwordReset, email: Self.email) }
                let sends = failure { try client.sendOob(.passwordReset, email: Self.email) }.reason
                #expect(sends == "TOO_MANY_ATTEMPTS_TRY_LATER")
                for half in [step, .zero - step] {
                    await Self.step(server, half)
                    #expect(failure { _ = try client.signIn(Self.email, password: "wrong") }.reason == refused)
                    #expect(failure { try client.sendOob(.passwordReset, email: Self.email) }.reason == sends)
                }
                server.clock.advance(by: .hours(1) + .seconds(1))
                _ = try client.signIn(Self.email)
                try client.sendOob(.passwordReset, email: Self.email)
            }
        }
    }

    @Test func `A session that began far ahead of the time is none`() async throws {
        let settings = TenantSettings(StoredTenant(tenant: Messages.Tenant()))
        let now = Timestamp(seconds: 1_800_000_000)
        func cause(_ ahead: Duration) -> RefreshDecision.RefusedCause? {
            StoredSession(createdAtMicros: (now + ahead).microseconds).refusedCause(settings: settings, now: now)
        }
        #expect(cause(.zero) == nil && cause(.days(31)) == nil)
        #expect(cause(.days(31) + .microseconds(1)) == .expired && cause(.days(365)) == .expired)
    }
}
