import Base
import Identity
import Messages
import Service
import Synchronization
import TestSupport
import Testing

/// The feed of a cluster's node that lags behind another one.
extension RevocationTests {
    /// A cursor behind a revocation that the second node does not know.
    private static func cursorOfFirst(_ nodes: TwoNodes) throws -> Text {
        let client = try IdentityClient(nodes.first)
        _ = try revoke(client, try #require(try client.signUp("ada@example.com").user).uid)
        return try nextBatch(try watch(nodes.first)).cursor
    }

    @Test func aNodeThatLagsGoesOnBehindTheCursorOfAnother() async throws {
        try await withTwoNodes { nodes in
            let cursor = try Self.cursorOfFirst(nodes)
            let client = try IdentityClient(nodes.first)
            let newest = try Self.revoke(client, try #require(try client.signUp("bob@example.com").user).uid)
            let missed = try Self.nextBatch(try Self.watch(nodes.second, cursor: cursor))
            #expect(missed.snapshotReason == .unspecified)
            #expect(missed.revocations.map(\.uid) == [newest.uid])
        }
    }

    @Test func aCursorBeyondTheJournalsEndBeginsWithASnapshot() async throws {
        try await withTwoNodes { nodes in
            let cursor = try Self.cursorOfFirst(nodes)
            for node in [nodes.first, nodes.second] {
                let snapshot = try Self.nextBatch(try Self.watch(node, cursor: Text("\(cursor)9")))
                #expect(snapshot.snapshotReason == .cursorUnknown)
            }
            // The number of the revocation is the cursor's last but one part.
            var parts = cursor.string.split(separator: ".").map(String.init)
            parts[parts.count - 2] = "77"
            let beyond = Text(parts.joined(separator: "."))
            let snapshot = try Self.nextBatch(try Self.watch(nodes.second, cursor: beyond))
            #expect(snapshot.snapshotReason == .cursorUnknown && snapshot.revocations.count == 1)
        }
    }

    @Test func aNodeThatCannotAskForTheEndMakesNoVerifierForget() async throws {
        try await withTwoNodes(configure: { $0.limits.journal.patience = .milliseconds(50) }) { nodes in
            nodes.journals.second.isAway.store(true, ordering: .relaxed)
            let cursor = try Self.cursorOfFirst(nodes)
            for cursor in [cursor, ""] {
                expectRefusal("NODE_BEHIND") { _ = try Self.watch(nodes.second, cursor: cursor).next() }
            }
        }
    }

    /// The clock of the node that imports is behind the clock of the node that deleted.
    @Test func anImportUnderADeletedUsersUidMakesTokensThatNoVerifierRefuses() async throws {
        let clocks = (ManualClock(), ManualClock(startingAt: ManualClock().clock.now() - .seconds(2)))
        try await withTwoNodes(clock: clocks.0, secondClock: clocks.1) { nodes in
            let (one, two) = (try IdentityClient(nodes.first), try IdentityClient(nodes.second))
            let uid = try #require(try one.signUp("ada@example.com").user).uid
            let _: UsersDeleteResponse = try one.client.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
            let snapshot = try Self.nextBatch(try Self.watch(nodes.first))
            let revocation = try #require(snapshot.revocations.first { $0.kind == .user && $0.uid == uid })
            let imported = try ImportTests.importing(two.client, [ImportUser(uid: uid, email: "ada@example.com")])
            #expect(imported.createdCount == 1)
            let tokens = try #require(try two.signIn(customTokenFor: uid).tokens)
            #expect(JWTClaims(tokens.idToken).integer("gen") >= revocation.validAfterMicros)
            #expect(try two.lookup(tokens.idToken).uid == uid)
        }
    }

    @Test func aSnapshotTellsTheTimeUpToWhichItsNodeKnowsEverything() async throws {
        try await withTwoNodes { nodes in
            for node in [nodes.first, nodes.second] {
                let snapshot = try Self.nextBatch(try Self.watch(node))
                // The node asked its engine a moment ago, and what others did since may be missing. The clock stands.
                #expect(snapshot.timeMicros < node.clock.clock.now().microseconds)
            }
        }
    }
}
