import Base
import Crypto
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// The feed of revocations: what comes, in which order, and where it resumes.
@Suite struct RevocationTests {
    typealias Stream = RawStream<TokensWatchRevocationsResponse>

    static func watch(
        _ server: TestServer, cursor: Text = .empty, tenantID: Text = .empty, anyTenant: Bool = false,
        cookies: Bool = false, apiKey: Secret? = nil
    ) throws -> Stream {
        try Stream(
            server, "postern.v1.Tokens/WatchRevocations",
            TokensWatchRevocationsRequest(
                tenantID: tenantID, anyTenant: anyTenant, cursor: cursor, heartbeatSeconds: 1, sessionCookies: cookies),
            apiKey: apiKey)
    }

    /// Reads on until a revocation came; heartbeats in between are left out.
    static func nextBatch(_ stream: Stream) throws -> TokensWatchRevocationsResponse {
        while true {
            let message = try #require(try stream.next())
            if !message.revocations.isEmpty || message.snapshotReason != .unspecified { return message }
        }
    }

    static func revoke(_ client: IdentityClient, _ uid: Text) throws -> User {
        client.server.clock.advance(by: .milliseconds(1))
        let revoked: UsersRevokeTokensResponse = try client.client.call(
            "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid))
        return try #require(revoked.user)
    }

    private static func delete(_ client: IdentityClient, _ uid: Text) throws {
        let _: UsersDeleteResponse = try client.client.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
    }

    enum Cause: CaseIterable { case revokeTokens, passwordChange, disabled, deleted, signOut, reuse, tooManySessions }

    @Test(arguments: Cause.allCases)
    func whateverRevokesATokenComesThroughTheFeed(_ cause: Cause) async throws {
        try await withServer(configure: { $0.limits.sessionsPerUserMax = 2 }) { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let (uid, tokens) = (made.user!.uid, made.tokens!)
            let stream = try Self.watch(server)
            #expect(try Self.nextBatch(stream).snapshotReason == .noCursor)
            server.clock.advance(by: .seconds(1))
            var isOfSession = false
            switch cause {
            case .revokeTokens: _ = try Self.revoke(client, uid)
            case .passwordChange:
                let _: AccountsUpdateResponse = try client.client.call(
                    "postern.v1.Accounts/Update",
                    AccountsUpdateRequest(
                        idToken: tokens.idToken, updateMask: ProtobufFieldMask(paths: ["password"]),
                        password: Secret("another horse")))
            case .disabled: try client.update(uid, ["disabled"]) { $0.disabled = true }
            case .deleted: try Self.delete(client, uid)
            case .signOut:
                isOfSession = true
                let _: SessionsSignOutResponse = try client.client.call(
                    "postern.v1.Sessions/SignOut", SessionsSignOutRequest(idToken: tokens.idToken))
            case .reuse:
                isOfSession = true
                _ = try client.refresh(tokens.refreshToken)
                server.clock.advance(by: .minutes(1))
                expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(tokens.refreshToken) }
            case .tooManySessions:
                isOfSession = true
                for _ in 0..<2 { _ = try client.signIn("ada@example.com") }
            }
            let revocation = try #require(try Self.nextBatch(stream).revocations.first)
            #expect(revocation.uid == uid && revocation.tenantID.isEmpty)
            #expect(revocation.timeMicros == server.clock.clock.now().microseconds)
            let claims = JWTClaims(tokens.idToken)
            if isOfSession {
                #expect(revocation.kind == .session && revocation.sessionID == claims.text("sid"))
            } else {
                #expect(revocation.kind == .user && revocation.validAfterMicros > claims.integer("gen"))
            }
        }
    }

    @Test func aWatcherThatComesBackMissesNothing() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uids = try (0..<4).map { try client.signUp(Text("user\($0)@example.com")).user!.uid }
            let first = try Self.watch(server)
            _ = try Self.nextBatch(first)
            _ = try Self.revoke(client, uids[0])
            let seen = try Self.nextBatch(first)
            first.client.close()
            for uid in uids[1...] { _ = try Self.revoke(client, uid) }
            let second = try Self.watch(server, cursor: seen.cursor)
            let missed = try Self.nextBatch(second)
            #expect(missed.snapshotReason == .unspecified)
            #expect(missed.revocations.map(\.uid) == Array(uids[1...]))
            let now = server.clock.clock.now()
            #expect(((now - TestEngine.stalenessMax).microseconds...now.microseconds).contains(missed.timeMicros))
        }
    }

    @Test func aCursorIsGoodAfterARestart() async throws {
        try await withTemporaryDirectory { directory in
            let clock = ManualClock()
            let masterKey = MasterKey.generate(random: .system)
            let (cursor, uid, adminKey) = try await withServer(
                directory: directory, clock: clock, masterKey: masterKey
            ) { server in
                let client = try IdentityClient(server)
                let uid = try client.signUp("ada@example.com").user!.uid
                let cursor = try Self.nextBatch(try Self.watch(server)).cursor
                _ = try Self.revoke(client, uid)
                return (cursor, uid, server.adminKey)
            }
            try await withServer(
                directory: directory, clock: clock, masterKey: masterKey, adminKey: adminKey
            ) { server in
                let missed = try Self.nextBatch(try Self.watch(server, cursor: cursor))
                #expect(missed.snapshotReason == .unspecified)
                #expect(missed.revocations.map(\.uid) == [uid])
            }
        }
    }

    @Test func aCursorOfTheStoreBeforeABackupWasRestoredIsNotTakenForThisOnes() async throws {
        let masterKey = MasterKey.generate(random: .system)
        let clock = ManualClock()
        func revoking(_ count: Int, _ body: @Sendable (TestServer, Text) throws -> Text) async throws -> Text {
            try await withTemporaryDirectory { directory in
                try await withServer(directory: directory, clock: clock, masterKey: masterKey) { server in
                    let client = try IdentityClient(server)
                    let uid = try client.signUp("ada@example.com").user!.uid
                    for _ in 0..<count { _ = try Self.revoke(client, uid) }
                    return try body(server, uid)
                }
            }
        }
        let cursor = try await revoking(3) { server, _ in try Self.nextBatch(try Self.watch(server)).cursor }
        // Another store has reached the same position again by the time the watcher comes back.
        for count in [3, 5] {
            _ = try await revoking(count) { server, uid in
                let snapshot = try Self.nextBatch(try Self.watch(server, cursor: cursor))
                #expect(snapshot.snapshotReason == .cursorUnknown)
                #expect(snapshot.revocations.map(\.uid) == [uid])
                return snapshot.cursor
            }
        }
    }

    @Test func whoCatchesUpIsToldThatMoreFollows() async throws {
        try await withServer { server in
            let cursor = try Self.nextBatch(try Self.watch(server)).cursor
            try await server.project.store.write { transaction in
                for number in 1...1_234 as ClosedRange<Int64> {
                    try transaction.put(
                        Tables.revocations, SequenceKey(.empty, number),
                        Revocation(kind: .session, uid: "ada", sessionID: Text("\(number)")))
                    try transaction.put(Tables.revocationTenants, RevocationKey(number), [])
                }
            }
            let stream = try Self.watch(server, cursor: cursor)
            let messages = try (0..<3).map { _ in try #require(try stream.next()) }
            #expect(messages.allSatisfy { $0.snapshotReason == .unspecified })
            #expect(messages.map(\.revocations.count) == [500, 500, 234])
            #expect(messages.map(\.continues) == [true, true, false])
        }
    }

    @Test func aCursorThatIsTooOldOrNotOursBeginsWithASnapshot() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.signUp("ada@example.com").user!.uid
            _ = try Self.revoke(client, uid)
            let old = try Self.nextBatch(try Self.watch(server)).cursor
            for _ in 0..<3 { _ = try Self.revoke(client, uid) }
            server.clock.advance(by: .minutes(10))
            await server.project.sweep()
            server.clock.advance(by: .hours(24 * 15))
            let newest = try Self.revoke(client, uid)
            await server.project.sweep()
            let late = try Self.nextBatch(try Self.watch(server, cursor: old))
            #expect(late.snapshotReason == .cursorTooOld)
            #expect(late.revocations.map(\.validAfterMicros) == [newest.tokensValidAfterMicros])
            for foreign in ["x", "0011.*.1", Text("\(late.cursor)9")] as [Text] {
                #expect(try Self.nextBatch(try Self.watch(server, cursor: foreign)).snapshotReason == .cursorUnknown)
            }
            #expect(
                try Self.nextBatch(try Self.watch(server, cursor: old, anyTenant: true)).snapshotReason
                    == .cursorUnknown)
        }
    }

    @Test func aSnapshotHasWhatStillMattersAndOfAUserTheNewestOnly() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let ada = try client.signUp("ada@example.com").user!.uid
            let bob = try client.signUp("bob@example.com").user!.uid
            _ = try Self.revoke(client, bob)
            server.clock.advance(by: .minutes(10))
            await server.project.sweep()
            server.clock.advance(by: .hours(4))
            for _ in 0..<5 { _ = try Self.revoke(client, ada) }
            let newest = try Self.revoke(client, ada)
            let snapshot = try Self.nextBatch(try Self.watch(server))
            #expect(!snapshot.continues)
            #expect(snapshot.revocations.map(\.uid) == [ada])
            #expect(snapshot.revocations.map(\.validAfterMicros) == [newest.tokensValidAfterMicros])
            // Cookies live for two weeks.
            let long = try Self.nextBatch(try Self.watch(server, cookies: true))
            #expect(long.revocations.map(\.uid) == [bob, ada])
        }
    }

    @Test func anAccountMadeAgainUnderItsUidDoesNotHideTheOldOnesRevocation() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let uid = made.user!.uid
            server.clock.advance(by: .seconds(1))
            try Self.delete(client, uid)
            server.clock.advance(by: .seconds(1))
            let _: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: uid, email: "ada@example.com"))
            let snapshot = try Self.nextBatch(try Self.watch(server))
            let revocation = try #require(snapshot.revocations.first)
            #expect(revocation.validAfterMicros > JWTClaims(made.tokens!.idToken).integer("gen"))
        }
    }

    /// Puts 1,234 revocations of sessions into the log.
    static func fillLog(of server: TestServer) async throws {
        try await server.project.store.write { transaction in
            for number in 1...1_234 as ClosedRange<Int64> {
                try transaction.put(
                    Tables.revocations, SequenceKey(.empty, number),
                    Revocation(
                        kind: .session, uid: "ada", sessionID: Text("\(number)"),
                        timeMicros: server.clock.clock.now().microseconds))
                try transaction.put(Tables.revocationTenants, RevocationKey(number), [])
            }
        }
    }

    @Test func aLongSnapshotComesInPieces() async throws {
        try await withServer { server in
            try await Self.fillLog(of: server)
            for anyTenant in [false, true] {
                let stream = try Self.watch(server, anyTenant: anyTenant)
                var ids: [Text] = []
                var message = try #require(try stream.next())
                #expect(message.snapshotReason == .noCursor && message.continues)
                while true {
                    ids += message.revocations.map(\.sessionID)
                    if !message.continues { break }
                    #expect(message.cursor.isEmpty)
                    message = try #require(try stream.next())
                }
                #expect(ids == (1...1_234).map { Text("\($0)") })
                #expect(!message.cursor.isEmpty)
            }
        }
    }
}
