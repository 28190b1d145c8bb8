import Base
import Identity
import Messages
import Store
import Synchronization
import TestSupport
import Testing
import Transport
import Wire

@testable import Service

/// A node that cannot ask its engine, and callers whose credentials it does not know.
@Suite struct StaleNodeTests {
    private func verify(_ client: RawClient, _ idToken: Text) throws -> Text {
        let answer: TokensVerifyIdTokenResponse = try client.call(
            "postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: idToken))
        return answer.uid
    }

    /// Runs `body` with a user's tokens, at a node whose engine is gone.
    private func withLoneNode(
        _ configure: @escaping @Sendable (inout Instance.Configuration) -> Void,
        _ body: (_ client: RawClient, _ user: AccountsSignUpResponse) throws -> Void
    ) async throws {
        try await withTwoNodes(
            configure: { configuration in
                configuration.limits.journal.patience = .milliseconds(50)
                configure(&configuration)
            },
            { nodes in
                let client = try IdentityClient(nodes.first)
                let user = try client.signUp("ada@example.com")
                nodes.journals.first.isAway.store(true, ordering: .relaxed)
                try body(client.client, user)
            })
    }

    @Test func forAWhileReadsGoOn() async throws {
        try await withLoneNode({ _ in }) { client, user in
            let idToken = try #require(user.tokens).idToken
            let uid = try verify(client, idToken)
            #expect(uid == user.user?.uid)
        }
    }

    @Test func thenTokensAreNotToldToBeGoodAnyMore() async throws {
        try await withLoneNode({ $0.limits.journal.staleAfter = .zero }) { client, user in
            let tokens = try #require(user.tokens)
            expectRefusal("NODE_BEHIND") { _ = try verify(client, tokens.idToken) }
            expectRefusal("NODE_BEHIND") {
                let _: AccountsLookupResponse = try client.call(
                    "postern.v1.Accounts/Lookup", AccountsLookupRequest(idToken: tokens.idToken))
            }
            expectRefusal("NODE_BEHIND") {
                let _: TokensRefreshResponse = try client.call(
                    "postern.v1.Tokens/Refresh", TokensRefreshRequest(refreshToken: tokens.refreshToken))
            }
        }
    }

    @Test func unlessTheOperatorWantsThatTheyAre() async throws {
        let configure: @Sendable (inout Instance.Configuration) -> Void = { configuration in
            configuration.limits.journal.staleAfter = .zero
            configuration.limits.journal.whenBehind = .serve
        }
        try await withLoneNode(configure) { client, user in
            let idToken = try #require(user.tokens).idToken
            let uid = try verify(client, idToken)
            #expect(uid == user.user?.uid)
        }
    }

    @Test func strangersMakeANodeAskNoMoreThanItsLimit() async throws {
        try await withTwoNodes(configure: { $0.limits.journal.strangersQuestionsPerSecond = 0 }) { nodes in
            let client = try IdentityClient(nodes.first)
            let made: ProjectCreateApiKeyResponse = try client.client.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .projectAdmin, scope: Scope(tenants: .all(true))))
            let stranger = try nodes.second.connect(authenticated: false)
            stranger.apiKey = made.secretKey
            // The key may be good: this node does not know it, and does not say that it is bad.
            expectRefusal("NODE_BEHIND") {
                let _: ProjectServerInfoResponse = try stranger.call(
                    "postern.v1.Project/ServerInfo", ProjectServerInfoRequest())
            }
            let page = String(decoding: nodes.second.instance.prometheusText(), as: UTF8.self)
            #expect(page.contains(#"postern_calls_failed_total{rpc_status_code="UNAVAILABLE"} 0"#))
            // A caller whom the node knows is served as before.
            expectRefusal("USER_NOT_FOUND") {
                let _: UsersGetResponse = try IdentityClient(nodes.second).client.call(
                    "postern.v1.Users/Get", UsersGetRequest(uid: "nobody"))
            }
        }
    }

    /// Sends a call that the node cannot answer yet, and is gone.
    private func askAndLeave(_ server: TestServer, _ key: Secret) throws {
        let client = try server.connect(authenticated: false)
        client.apiKey = key
        _ = try client.hello()
        var ping = ByteBuffer()
        ControlFrame.ping(1, ack: false).append(to: &ping)
        let request = client.request(
            "postern.v1.Project/ServerInfo", ProjectServerInfoRequest(), stream: client.nextStream())
        try client.send(request + ping.copyBytes())
        // The call has been taken in when the PING is answered.
        #expect(try client.readFrame().header.type == .ping)
        client.reset()
    }

    /// The connection is closed before the node learns of its credential, and counts for nobody then.
    @Test func whoLeftBeforeTheNodeKnewTheCredentialTakesNoPlace() async throws {
        let gate = AppendGate()
        let configure: @Sendable (inout Instance.Configuration) -> Void = { configuration in
            configuration.threads = 1
            configuration.limits.connectionsPerCallerMax = 2
        }
        try await withTwoNodes(secondGate: gate, configure: configure) { nodes in
            defer { gate.open() }
            let second = nodes.second
            // The node's writer waits with a change, and whoever asks for the journal's end waits behind it.
            gate.close()
            let writing = Task {
                try await atOnce(1) { _ -> UsersCreateResponse in
                    try second.connect().call("postern.v1.Users/Create", UsersCreateRequest(uid: "ada"))
                }
            }
            try await until("an entry waits at the gate") { gate.isHolding }
            let made: ProjectCreateApiKeyResponse = try nodes.first.connect().call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .projectAdmin, scope: Scope(tenants: .all(true))))
            let connections = second.instance.server.metrics.connectionsOpen
            let others = connections.value
            for _ in 0..<2 { try askAndLeave(second, made.secretKey) }
            try await until("those that left have no connection") { connections.value <= others }
            gate.open()
            for written in try await writing.value { _ = try written.get() }
            // This call comes after theirs.
            let _: ProjectServerInfoResponse = try second.connect().call(
                "postern.v1.Project/ServerInfo", ProjectServerInfoRequest(),
                metadata: [OutgoingMetadata.Entry(key: "x-postern-consistency", value: "latest")])
            let returning = try second.connect(authenticated: false)
            returning.apiKey = made.secretKey
            let _: ProjectServerInfoResponse = try returning.call(
                "postern.v1.Project/ServerInfo", ProjectServerInfoRequest())
        }
    }

    @Test func aRateCountsBySeconds() {
        var rate = QuestionRate(perSecond: 2)
        let times: [Int64] = [0, 1, 999_999_999, 1_000_000_000, 1_000_000_001, 1_500_000_000]
        let taken = times.map { rate.take(now: Instant(nanoseconds: $0)) }
        #expect(taken == [true, true, false, true, true, false])
    }
}
