import Base
import Messages
import Store
import TestSupport
import Testing

@testable import Identity

/// A node is held up on its way to the engine, and its change runs again after those of another node. The change began
/// earlier than they did, and comes later.
@Suite struct HeldNodeTests {
    /// Has the second node begin `work`, whose entry is held up until `meanwhile` is done.
    private static func held<Done: Sendable, Other>(
        _ nodes: TwoNodes, _ gate: AppendGate, _ work: @escaping @Sendable (TestServer) async throws -> Done,
        meanwhile: () async throws -> Other
    ) async throws -> (done: Done, other: Other) {
        gate.close()
        defer { gate.open() }
        let second = nodes.second
        let working = Task { try await work(second) }
        try await until("an entry waits at the gate") { gate.isHolding }
        let other = try await meanwhile()
        gate.open()
        return (try await working.value, other)
    }

    /// The same for a call of the second node.
    private static func heldCall<Answer: Sendable, Other>(
        _ nodes: TwoNodes, _ gate: AppendGate, _ call: @escaping @Sendable (IdentityClient) throws -> Answer,
        meanwhile: () async throws -> Other
    ) async throws -> (done: Answer, other: Other) {
        let work: @Sendable (TestServer) async throws -> Answer = { second in
            let answers = try await atOnce(1) { _ in try call(try IdentityClient(second)) }
            return try answers[0].get()
        }
        return try await held(nodes, gate, work, meanwhile: meanwhile)
    }

    private static func refreshToken(_ tokens: TokenPair?) throws -> Text { try #require(tokens).refreshToken }

    // MARK: Refresh tokens

    /// Two tabs refresh at once, each through another node.
    @Test func aRefreshOfATokenThatWasRotatedMeanwhileHasItsGrace() async throws {
        let gate = AppendGate()
        try await withTwoNodes(secondGate: gate) { nodes in
            let one = try IdentityClient(nodes.first)
            let token = try Self.refreshToken(try one.signUp("ada@example.com").tokens)
            let (answer, successor) = try await Self.heldCall(nodes, gate) {
                try $0.refresh(token)
            } meanwhile: {
                nodes.first.clock.advance(by: .seconds(6))
                return try Self.refreshToken(try one.refresh(token).tokens)
            }
            #expect(answer.outcome == .repeatedWithinGrace)
            #expect(answer.tokens?.refreshToken == successor)
            #expect(try one.refresh(successor).outcome == .rotated)
        }
    }

    enum Rotation: CaseIterable { case refresh, link }

    @Test(arguments: Rotation.allCases)
    func theGraceBeginsWhenTheRotationIsWritten(_ rotation: Rotation) async throws {
        let gate = AppendGate()
        try await withTwoNodes(secondGate: gate) { nodes in
            let one = try IdentityClient(nodes.first)
            let tokens = try #require(try one.signUp("ada@example.com").tokens)
            let (successor, _) = try await Self.heldCall(nodes, gate) { two in
                switch rotation {
                case .refresh: return try Self.refreshToken(try two.refresh(tokens.refreshToken).tokens)
                case .link:
                    return try Self.refreshToken(try two.signIn(.google(), linkingTo: tokens.idToken).tokens)
                }
            } meanwhile: {
                nodes.first.clock.advance(by: .seconds(12))
                // The second node's change has to run again, over this one.
                _ = try one.signUp("bob@example.com")
            }
            let other = try one.refresh(tokens.refreshToken)
            #expect(other.outcome == .repeatedWithinGrace && other.tokens?.refreshToken == successor)
        }
    }

    // MARK: Proofs that count once

    /// The token was in time when the held call began, and the record of its use is old when the call's change runs.
    @Test func aCustomTokenThatWasUsedMeanwhileStaysUsed() async throws {
        let gate = AppendGate()
        try await withTwoNodes(secondGate: gate) { nodes in
            let one = try IdentityClient(nodes.first)
            _ = try one.signIn(customTokenFor: "ada")
            let token = try one.customToken(for: "ada")
            @Sendable func signIn(_ client: IdentityClient) throws {
                let _: AccountsSignInWithCustomTokenResponse = try client.client.call(
                    "postern.v1.Accounts/SignInWithCustomToken", AccountsSignInWithCustomTokenRequest(token: token))
            }
            nodes.first.clock.advance(by: .seconds(3_599))
            let (refused, _) = try await Self.heldCall(nodes, gate) { two in
                failure { try signIn(two) }
            } meanwhile: {
                try signIn(one)
                nodes.first.clock.advance(by: .seconds(30))
                try await nodes.first.project.sweepForAll()
            }
            #expect(refused.reason == "INVALID_CUSTOM_TOKEN" && refused.metadata("cause") == "USED")
        }
    }

    // MARK: The sweep

    /// A note says which revocation was the last one at its time, and verifiers' snapshots leave out what looks old.
    @Test func aRevocationWhileASweepWaitsDoesNotLookOlderThanItIs() async throws {
        let gate = AppendGate()
        try await withTwoNodes(secondGate: gate) { nodes in
            let one = try IdentityClient(nodes.first)
            let uid = try #require(try one.signUp("ada@example.com").user).uid
            func revoke() throws {
                let _: UsersRevokeTokensResponse = try one.client.call(
                    "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid))
            }
            try revoke()
            // Nothing but a note is left to write for the next sweep.
            try await nodes.second.project.sweepForAll()
            try revoke()
            let before = nodes.first.clock.clock.now()
            _ = try await Self.held(nodes, gate) {
                try await $0.project.sweepForAll()
            } meanwhile: {
                nodes.first.clock.advance(by: .hours(2))
                try revoke()
            }
            let store = nodes.second.project.store
            let old = try store.read { try $0.revocationSequence(before: before + .hours(1)) }
            let last = try store.read { try $0.lastRevocationSequence() }
            #expect(old < last)
        }
    }
}
