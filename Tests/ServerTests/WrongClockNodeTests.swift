import Base
import Messages
import Service
import Store
import TestSupport
import Testing

@testable import Identity

/// A node whose clock is far from its cluster's, as clients and verifiers see it.
@Suite struct WrongClockNodeTests {
    /// The second node's clock goes ahead for so long that it is believed there. The first node's clock is the
    /// engine's.
    private func putAhead(_ nodes: TwoNodes, by duration: Duration) async throws {
        let second = nodes.second
        second.clock.step(by: duration)
        second.project.checkClock()
        second.clock.advance(by: TimeKeeping.believedAfter)
        second.project.checkClock()
        try await second.project.store.reachJournalEnd()
        #expect(second.project.store.isClockAway)
    }

    private func withNodes(_ body: (TwoNodes) async throws -> Void) async throws {
        let clock = ManualClock()
        try await withTwoNodes(clock: clock, secondClock: ManualClock(), engineClock: clock.clock, body)
    }

    private func verify(cookie: Text, _ client: IdentityClient) throws {
        let _: TokensVerifySessionCookieResponse = try client.client.call(
            "postern.v1.Tokens/VerifySessionCookie", TokensVerifySessionCookieRequest(sessionCookie: cookie))
    }

    private func verify(idToken: Text, _ client: IdentityClient) throws {
        let _: TokensVerifyIdTokenResponse = try client.client.call(
            "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: idToken))
    }

    @Test func itTellsNobodyThatASessionOrTokenHasExpired() async throws {
        try await withNodes { nodes in
            let (one, two) = (try IdentityClient(nodes.first), try IdentityClient(nodes.second))
            let tokens = try #require(try one.signUp("ada@example.com").tokens)
            let made: TokensCreateSessionCookieResponse = try one.client.call(
                "postern.v1.Tokens/CreateSessionCookie", TokensCreateSessionCookieRequest(idToken: tokens.idToken))
            try await putAhead(nodes, by: .days(40))
            expectRefusal("NODE_BEHIND") { try verify(idToken: tokens.idToken, two) }
            expectRefusal("NODE_BEHIND") { _ = try two.lookup(tokens.idToken) }
            expectRefusal("NODE_BEHIND") { try verify(cookie: made.sessionCookie, two) }
            expectRefusal("NODE_BEHIND") { _ = try two.refresh(tokens.refreshToken) }
            // What no clock makes good is refused as ever.
            expectRefusal("INVALID_ID_TOKEN") { try verify(idToken: "no token", two) }
            // The other node goes on, and refuses by the time.
            _ = try one.refresh(tokens.refreshToken)
            nodes.first.clock.advance(by: .hours(2))
            expectRefusal("TOKEN_EXPIRED") { try verify(idToken: tokens.idToken, one) }
        }
    }

    @Test func itTellsNoWatcherThatItsSessionHasExpired() async throws {
        try await withNodes { nodes in
            let one = try IdentityClient(nodes.first)
            let made = try one.signUp("ada@example.com")
            let (uid, idToken) = (try #require(made.user).uid, try #require(made.tokens).idToken)
            let stream = try RawStream<SessionsWatchAuthStateResponse>(
                nodes.second, "postern.v1.Sessions/WatchAuthState", SessionsWatchAuthStateRequest(idToken: idToken))
            let first = try #require(try stream.next())
            #expect(first.change == .initial)
            try await putAhead(nodes, by: .days(40))
            let _: UsersUpdateResponse = try one.client.call(
                "postern.v1.Users/Update",
                UsersUpdateRequest(
                    uid: uid, updateMask: ProtobufFieldMask(paths: ["photo_url"]), photoURL: "https://example.com/a"))
            try await nodes.second.project.store.reachJournalEnd()
            expectRefusal("NODE_BEHIND") { _ = try stream.next() }
        }
    }

    /// The verifier goes on with what it knows when the clock is mended: nothing may be missing.
    @Test func itsSnapshotLeavesNoRevocationOut() async throws {
        try await withNodes { nodes in
            let one = try IdentityClient(nodes.first)
            let uid = try #require(try one.signUp("ada@example.com").user).uid
            _ = try RevocationTests.revoke(one, uid)
            let now = nodes.first.clock.clock.now()
            try await nodes.first.project.store.write { try $0.noteRevocationTime(now) }
            try await putAhead(nodes, by: .hours(3))
            // The clock has proved itself.
            nodes.second.clock.advance(by: TimeKeeping.provenAfter)
            nodes.second.project.checkClock()
            #expect(nodes.second.project.time.isProven)
            let snapshot = try RevocationTests.nextBatch(try RevocationTests.watch(nodes.second))
            #expect(snapshot.snapshotReason == .noCursor)
            #expect(snapshot.revocations.contains { $0.kind == .user && $0.uid == uid })
            // Verifiers check tokens by this time.
            let age = nodes.first.clock.clock.now() - Timestamp(microseconds: snapshot.timeMicros)
            #expect(age >= .zero && age < .minutes(1))
        }
    }
}
