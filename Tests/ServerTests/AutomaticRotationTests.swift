import Base
import JSON
import Messages
import Reactor
import Service
import Signing
import TestSupport
import Testing
import Wire

@testable import Identity
@testable import Store

/// Signing keys that the server replaces by itself, as clients, verifiers and operators see it.
@Suite struct AutomaticRotationTests {
    private static let monthly: @Sendable (inout Instance.Configuration) -> Void = {
        $0.project.signingKeyPeriod = .days(30)
    }

    /// The ids of the published keys, newest first.
    private static func publishedIDs(_ client: IdentityClient, _ use: TokenUse) throws -> [Text] {
        let listed: TokensListKeysResponse = try client.client.call(
            "postern.v1.Tokens/ListKeys", TokensListKeysRequest(tokenUse: use))
        return try JSONValue(parsing: listed.jwksJSON)["keys"]?.array?.compactMap { $0["kid"]?.text } ?? []
    }

    /// The keys of ID tokens as an admin sees them, newest first.
    private static func listed(_ client: IdentityClient) throws -> [SigningKeyInfo] {
        let listed: ProjectListSigningKeysResponse = try client.client.call(
            "postern.v1.Project/ListSigningKeys", ProjectListSigningKeysRequest())
        return listed.keys.filter { $0.tokenUse == .idToken }
    }

    private static func newToken(_ client: IdentityClient, _ email: Text) throws -> Text {
        try #require(try client.signUp(email).tokens).idToken
    }

    private static func keyID(of token: Text) throws -> Text? {
        let header = try #require(token.bytes.split(separator: UInt8(ascii: ".")).first)
        return try JSONValue(parsing: try #require(Base64.url.decode(header)))["kid"]?.text
    }

    private static func verify(_ client: IdentityClient, _ token: Text) throws {
        let _: TokensVerifyIdTokenResponse = try client.client.call(
            "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: token))
    }

    private static func events(_ client: IdentityClient, _ kind: EventKind) throws -> [AuditEvent] {
        let listed: AuditListEventsResponse = try client.client.call(
            "postern.v1.Audit/ListEvents", AuditListEventsRequest(filter: EventFilter(kinds: [kind])))
        return listed.events
    }

    /// The seconds since 1970 at which /metrics says that the next key of ID tokens is made.
    private static func metric(_ server: TestServer) throws -> Double? {
        let page = try #require(server.instance.sidePortRoutes["/metrics"]?()).body
        let name = #"postern_signing_key_rotation_timestamp_seconds{use="id_token"} "#
        let line = String(decoding: page, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(separator: " ").last.flatMap { Double($0) }
    }

    private static func counts(_ server: TestServer) -> [Int] {
        server.project.signingKeys.all.map { $0.list().count }
    }

    /// A server whose clock is not proven yet makes no keys.
    private static func proveClock(_ server: TestServer) {
        server.clock.advance(by: .minutes(11))
        server.project.checkClock()
    }

    // MARK: A key's life

    @Test func aKeyIsPublishedAheadThenSignsAndTheOldOneRetires() async throws {
        try await withServer(configure: Self.monthly) { server in
            let client = try IdentityClient(server)
            let begin = server.project.startedAt
            let first = try Self.publishedIDs(client, .idToken)
            #expect(try Self.listed(client).map(\.rotatesAtMicros) == [(begin + .days(23)).microseconds])
            #expect(try Self.metric(server) == Double((begin + .days(23)).seconds))
            server.clock.advance(by: .days(23) - .seconds(1))
            await server.project.sweep()
            #expect(try Self.publishedIDs(client, .idToken) == first)

            server.clock.advance(by: .seconds(1))
            for _ in 0..<2 { await server.project.sweep() }
            let both = try Self.publishedIDs(client, .idToken)
            #expect(both.count == 2 && Array(both.suffix(1)) == first)
            #expect(try Self.publishedIDs(client, .sessionCookie).count == 2)
            #expect(try Self.listed(client).map(\.state) == [.published, .signing])
            #expect(try Self.keyID(of: try Self.newToken(client, "early@example.com")) == first.first)

            server.clock.advance(by: .days(7) - .minutes(1))
            let last = try Self.newToken(client, "last@example.com")
            #expect(try Self.keyID(of: last) == first.first)
            server.clock.advance(by: .minutes(1))
            #expect(try Self.listed(client).map(\.state) == [.signing, .retired])
            #expect(try Self.keyID(of: try Self.newToken(client, "new@example.com")) == both.first)
            // The last token of the old key is good to its end.
            server.clock.advance(by: .minutes(58))
            await server.project.sweep()
            try Self.verify(client, last)
            server.clock.advance(by: .minutes(62))
            await server.project.sweep()
            #expect(try Self.publishedIDs(client, .idToken) == Array(both.prefix(1)))
            // A cookie lives longer.
            #expect(try Self.publishedIDs(client, .sessionCookie).count == 2)
            #expect(try Self.listed(client).map(\.rotatesAtMicros) == [(begin + .days(53)).microseconds])
            #expect(try Self.metric(server) == Double((begin + .days(53)).seconds))
        }
    }

    @Test func theEventsSayThatTheServerDidIt() async throws {
        try await withServer(configure: Self.monthly) { server in
            let client = try IdentityClient(server)
            server.clock.advance(by: .days(23))
            await server.project.sweep()
            let made = try Self.events(client, .signingKeyCreated)
            #expect(made.count == 4 && made.allSatisfy { $0.caller.isEmpty })
            #expect(Set(made.map(\.detail)).isSuperset(of: try Self.publishedIDs(client, .idToken)))
            server.clock.advance(by: .days(7) + .hours(2))
            await server.project.sweep()
            let retired = try Self.events(client, .signingKeyRetired)
            #expect(retired.count == 1 && retired.allSatisfy { $0.caller.isEmpty })
        }
    }

    @Test func withoutThePeriodKeysAreRotatedByHandOnly() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            server.clock.advance(by: .days(400))
            await server.project.sweep()
            #expect(Self.counts(server) == [1, 1])
            #expect(try Self.listed(client).map(\.rotatesAtMicros) == [0])
            #expect(try Self.metric(server) == 0)
        }
    }

    /// A repeated call gets the answer of the first one, with the time of the next rotation.
    @Test func aRotationByHandAnswersAlike() async throws {
        try await withServer(configure: Self.monthly) { server in
            let client = try server.connect()
            func rotate() throws -> SigningKeyInfo? {
                let made: ProjectRotateSigningKeyResponse = try client.call(
                    "postern.v1.Project/RotateSigningKey", ProjectRotateSigningKeyRequest(publishAheadSeconds: 60),
                    metadata: [OutgoingMetadata.Entry(key: "idempotency-key", value: "k1")])
                return made.key
            }
            let first = try #require(try rotate())
            let signsFrom = server.project.startedAt + .seconds(60)
            #expect(first.rotatesAtMicros == (signsFrom + .days(23)).microseconds)
            #expect(try rotate() == first)
        }
    }

    // MARK: Clocks

    @Test func aClockThatJumpsAheadForAMinuteMakesNoKey() async throws {
        try await withServer(configure: Self.monthly) { server in
            Self.proveClock(server)
            server.clock.step(by: .days(400))
            for _ in 0..<2 {
                await server.project.sweep()
                server.clock.advance(by: .minutes(1))
            }
            server.clock.step(by: .zero - .days(400))
            await server.project.sweep()
            #expect(Self.counts(server) == [1, 1])
        }
    }

    @Test func aJumpThatIsBelievedMakesOneKey() async throws {
        try await withServer(configure: Self.monthly) { server in
            Self.proveClock(server)
            server.clock.step(by: .days(400))
            for count in [1, 1, 2, 2] {
                await server.project.sweep()
                #expect(Self.counts(server) == [count, count])
                server.clock.advance(by: .minutes(10))
            }
        }
    }

    @Test func aClockThatIsSetBackDoesNotStopTheRotation() async throws {
        try await withServer(configure: Self.monthly) { server in
            Self.proveClock(server)
            server.clock.step(by: .zero - .days(1))
            await server.project.sweep()
            server.clock.advance(by: .days(23))
            await server.project.sweep()
            #expect(server.project.sweepsPutOff.value == 2)
            #expect(Self.counts(server) == [2, 2])
        }
    }

    // MARK: Several nodes, and damage

    @Test func ofTwoNodesOneMakesTheNextKey() async throws {
        try await withTwoNodes(configure: Self.monthly) { nodes in
            let (first, second) = (nodes.first, nodes.second)
            first.clock.advance(by: .days(23))
            for server in [first, second] { server.project.checkClock() }
            try await first.project.signingKeys.rotateDue()
            #expect(Self.counts(first) == [2, 2])
            // The second node has not heard of it. Its write decides over what the first one wrote.
            #expect(Self.counts(second) == [1, 1] && second.project.signingKeys.isNextKeyDue)
            try await second.project.signingKeys.rotateDue()
            try await second.project.store.reachJournalEnd()
            try await first.project.store.reachJournalEnd()
            let keys = [first, second].map { $0.project.signingKeys.all.map { $0.list() } }
            #expect(keys[0] == keys[1] && Self.counts(first) == [2, 2])
            #expect(!second.project.signingKeys.isNextKeyDue)
        }
    }

    @Test func theNodeThatSweepsMakesTheNextKey() async throws {
        try await withTwoNodes(configure: Self.monthly) { nodes in
            let (first, second) = (nodes.first, nodes.second)
            first.clock.advance(by: .days(23))
            for server in [first, second] { server.project.checkClock() }
            await second.project.sweep()
            await first.project.sweep()
            try await first.project.store.reachJournalEnd()
            #expect(Self.counts(first) == [2, 2] && Self.counts(second) == [2, 2])
        }
    }

    @Test func whileAKeyIsDamagedNoneIsMade() async throws {
        let (named, failed) = (Counter(), Counter())
        let log = Log(level: .error) { line in
            let text = String(decoding: line, as: UTF8.self)
            if text.contains("passes over"), text.contains("signing_keys") { named.add() }
            if text.contains("the sweep failed") { failed.add() }
        }
        try await withServer(configure: Self.monthly, log: log) { server in
            let id = try #require(server.project.signingKeys.idTokens.list().first).keyID
            try await server.project.store.write { transaction in
                let (table, key) = (SigningTables.keys.declaration.asBytes, TextKey(id).bytes)
                try transaction.putDamaged(table, key, try transaction.get(table, key) ?? [])
            }
            server.clock.advance(by: .days(23))
            for _ in 0..<3 { await server.project.sweep() }
            #expect(Self.counts(server) == [1, 1])
            #expect(named.value == 1 && failed.value == 0)
        }
    }
}
