import Base
import Crypto
import Identity
import Messages
import Rules
import Service
import Store
import TestSupport
import Testing

/// A thief holds the refresh tokens that a session had before its owner changed something. If owners make that change
/// because somebody else may be signed in, none of these tokens works any more, however quick the thief is. The thief
/// cannot end the owner's session by presenting one either.
@Suite struct StolenRefreshTokenAttackTests {
    /// What the owner does, and the cause with which the thief's tokens are refused then.
    enum Change: CaseIterable {
        case password, email, unlink, reauthentication, linking
        case reset, emailByCode

        /// Whether the session in which the change is made goes on.
        var keepsSession: Bool { self != .reset && self != .emailByCode }
        var cause: String { self == .password || self == .reset ? "PASSWORD_CHANGED" : "SIGNED_OUT" }
    }

    enum Stolen: CaseIterable { case previous, previousWithItsAttempt, older, olderWithItsAttempt }

    private static let email: Text = "ada@example.com"

    private static func attempt(_ number: UInt8) -> [UInt8] { [UInt8](repeating: number, count: 16) }

    private static func refresh(
        _ client: IdentityClient, _ token: Text, _ attempt: [UInt8] = []
    ) throws -> TokensRefreshResponse {
        try client.client.call(
            "postern.v1.Tokens/Refresh", TokensRefreshRequest(refreshToken: token, attemptID: attempt))
    }

    /// The session's tokens after the change; nil when it ended them all.
    private static func make(
        _ change: Change, _ client: IdentityClient, _ tokens: TokenPair
    ) throws -> TokenPair? {
        switch change {
        case .password: return try update(client, tokens, "password").tokens
        case .email: return try update(client, tokens, "email").tokens
        case .unlink:
            let answer: AccountsUnlinkResponse = try client.client.call(
                "postern.v1.Accounts/Unlink",
                AccountsUnlinkRequest(idToken: tokens.idToken, providerID: "facebook.com"))
            return answer.tokens
        case .reauthentication:
            let password = EmailPasswordCredential(email: email, password: Secret("correct horse"))
            let answer: AccountsReauthenticateResponse = try client.client.call(
                "postern.v1.Accounts/Reauthenticate",
                AccountsReauthenticateRequest(idToken: tokens.idToken, credential: .password(password)))
            return answer.tokens
        case .linking: return try client.signIn(.apple(email: ""), linkingTo: tokens.idToken).tokens
        case .reset:
            try client.sendOob(.passwordReset, email: email)
            _ = try client.resetPassword(try client.mails()[0].code, "another horse")
            return nil
        case .emailByCode:
            try client.sendOob(.verifyAndChangeEmail, newEmail: "new@example.com", idToken: tokens.idToken)
            _ = try client.applyOob(try client.mails()[0].code)
            return nil
        }
    }

    private static func update(
        _ client: IdentityClient, _ tokens: TokenPair, _ path: Text
    ) throws -> AccountsUpdateResponse {
        try client.client.call(
            "postern.v1.Accounts/Update",
            AccountsUpdateRequest(
                idToken: tokens.idToken, updateMask: ProtobufFieldMask(paths: [path]),
                password: Secret("another horse"), email: "new@example.com"))
    }

    /// An account with a password and a linked identity, and the tokens of its session in the order they were made.
    private static func session(_ client: IdentityClient, mode: RefreshMode) throws -> [TokenPair] {
        try client.setTenant(["refresh_mode", "enable_email_privacy"]) {
            $0.refreshMode = mode
            $0.enableEmailPrivacy = false
        }
        let made = try client.signUp(email).tokens!
        let linked = try client.signIn(.facebook(email: ""), linkingTo: made.idToken).tokens!
        guard mode == .rotate else { return [made, linked] }
        let next = try refresh(client, linked.refreshToken, attempt(1)).tokens!
        return [linked, next, try refresh(client, next.refreshToken, attempt(2)).tokens!]
    }

    @Test(arguments: Change.allCases, [Duration.zero, .seconds(9), .seconds(11), .hours(3)])
    func `Old tokens are worth nothing after a change, and harm nobody`(_ change: Change, age: Duration) async throws {
        for stolen in Stolen.allCases where change != .linking {
            try await withServer { server in
                let client = try IdentityClient(server)
                let held = try Self.session(client, mode: .rotate)
                let owners = try Self.make(change, client, held[2])
                server.clock.advance(by: age)
                let refused = failure {
                    switch stolen {
                    // The token of the session when it was changed; nobody ever sent an attempt for its successor.
                    case .previous: _ = try Self.refresh(client, held[2].refreshToken)
                    case .previousWithItsAttempt: _ = try Self.refresh(client, held[2].refreshToken, Self.attempt(2))
                    case .older: _ = try Self.refresh(client, held[1].refreshToken)
                    case .olderWithItsAttempt: _ = try Self.refresh(client, held[1].refreshToken, Self.attempt(2))
                    }
                }
                #expect(refused.reason == "TOKEN_EXPIRED", "\(stolen)")
                #expect(refused.metadata("cause") == change.cause, "\(stolen)")
                guard let owners else {
                    #expect(!change.keepsSession)
                    return
                }
                let next = try Self.refresh(client, owners.refreshToken)
                #expect(next.outcome == .rotated, "\(stolen)")
            }
        }
    }

    @Test(arguments: [RefreshMode.rotate, .reuse], Change.allCases)
    func `The first of many old tokens ends nothing either`(_ mode: RefreshMode, _ change: Change) async throws {
        guard change.keepsSession, change != .linking else { return }
        try await withServer { server in
            let client = try IdentityClient(server)
            let held = try Self.session(client, mode: mode)
            let owners = try Self.make(change, client, held.last!)!
            for token in held {
                expectRefusal("TOKEN_EXPIRED", cause: change.cause) { _ = try Self.refresh(client, token.refreshToken) }
            }
            let next = try Self.refresh(client, owners.refreshToken).tokens!
            // The token that the owner got by the change is an ordinary one: presenting it twice is a replay.
            guard mode == .rotate else { return }
            server.clock.advance(by: .seconds(11))
            expectRefusal("TOKEN_EXPIRED", cause: "REVOKED_BY_REUSE") {
                _ = try Self.refresh(client, owners.refreshToken)
            }
            expectRefusal("TOKEN_EXPIRED", cause: "REVOKED_BY_REUSE") {
                _ = try Self.refresh(client, next.refreshToken)
            }
        }
    }

    @Test func `Linking keeps the grace of a second tab`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let held = try Self.session(client, mode: .rotate)
            let owners = try Self.make(.linking, client, held[2])!
            let tab = try Self.refresh(client, held[2].refreshToken)
            #expect(tab.outcome == .repeatedWithinGrace)
            #expect(tab.tokens?.refreshToken == owners.refreshToken)
        }
    }

    /// The thief learns from the session's stream when the owner refreshes, and comes a moment later.
    @Test func `A copy that follows each refresh of the owner is found out`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            var owners = try client.signUp(Self.email).tokens!
            var copy = owners.refreshToken
            func refresh() throws -> (owner: TokensRefreshResponse, thief: TokensRefreshResponse) {
                server.clock.advance(by: .hours(1))
                let answer = try Self.refresh(client, owners.refreshToken)
                owners = try #require(answer.tokens)
                server.clock.advance(by: .seconds(1))
                return (answer, try Self.refresh(client, copy))
            }
            let first = try refresh()
            #expect(first.owner.outcome == .rotated && first.thief.outcome == .repeatedWithinGrace)
            copy = try #require(first.thief.tokens).refreshToken
            #expect(copy == owners.refreshToken)
            let second = try refresh()
            #expect(second.owner.outcome == .rotated && second.thief.outcome == .repeatedWithinGrace)
            let tokens = try #require(second.thief.tokens)
            #expect(!tokens.idToken.isEmpty && tokens.refreshToken.isEmpty)
            // Asking again gives no more.
            #expect(try Self.refresh(client, copy).tokens?.refreshToken.isEmpty == true)
            expectRefusal("TOKEN_EXPIRED", cause: "REVOKED_BY_REUSE") { _ = try refresh() }
            expectRefusal("TOKEN_EXPIRED", cause: "REVOKED_BY_REUSE") {
                _ = try Self.refresh(client, owners.refreshToken)
            }
        }
    }

    /// A negative age does not count as young: a clock that is set back does not open the grace window again.
    @Test func `A clock that is set back gives no grace`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let stolen = try client.signUp(Self.email).tokens!
            _ = try Self.refresh(client, stolen.refreshToken)
            server.clock.advance(by: .seconds(3_600))
            server.clock.step(by: .seconds(-3_600))
            expectRefusal("TOKEN_EXPIRED") { _ = try Self.refresh(client, stolen.refreshToken) }
        }
    }

    @Test(arguments: Change.allCases)
    func `ID tokens of before say why they ended`(_ change: Change) async throws {
        guard change != .linking && change != .reauthentication else { return }
        try await withServer { server in
            let client = try IdentityClient(server)
            let held = try Self.session(client, mode: .rotate)
            server.clock.advance(by: .seconds(1))
            let owners = try Self.make(change, client, held[2])
            for token in held {
                expectRefusal("TOKEN_EXPIRED", cause: change.cause) { _ = try client.lookup(token.idToken) }
            }
            if let owners { _ = try client.lookup(owners.idToken) }
        }
    }

    /// Hashing a password takes a while: the owner's change is committed while the thief's is computed.
    @Test func `A change that was on its way when its token ended is refused`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let held = try Self.session(client, mode: .rotate)
            let project = server.project
            let token = try project.tokenCheck.verify(held[2].idToken)
            let thief = try project.store.read {
                try project.tokenCheck.check(token, settings: project.tenants.settings(of: .empty, in: $0), in: $0)
            }
            server.clock.advance(by: .seconds(1))
            let owners = try Self.make(.password, client, held[2])!
            let theirs = ProfileChange(newPasswordHash: "theirs")
            let request = EndUserRequest(
                caller: nil, settings: thief.settings, origin: .server, operation: "postern.v1.Accounts/Update",
                deadline: .distantFuture)
            let refused = await #expect(throws: Failure.self) {
                try await project.profileUpdates.apply(theirs, of: thief, validateOnly: false, request)
            }
            #expect(refused?.reason == "TOKEN_EXPIRED" && refused?.metadata("cause") == "PASSWORD_CHANGED")
            _ = try client.lookup(owners.idToken)
        }
    }

    /// Unlinking is done when the identity may be somebody else's: whoever signed in with it must be out.
    @Test func `Unlinking ends the sessions that the identity began`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let held = try Self.session(client, mode: .rotate)
            let thief = try client.signIn(.facebook(email: "")).tokens!
            server.clock.advance(by: .seconds(1))
            _ = try Self.make(.unlink, client, held[2])
            expectRefusal("TOKEN_EXPIRED", cause: "SIGNED_OUT") { _ = try Self.refresh(client, thief.refreshToken) }
            expectRefusal("TOKEN_EXPIRED", cause: "SIGNED_OUT") { _ = try client.lookup(thief.idToken) }
        }
    }

    /// A session that made room for a newer one is signed out; no record of it is kept to tell why.
    @Test func `A genuine token of a session that is gone has expired`() async throws {
        try await withServer(configure: { $0.limits.sessionsPerUserMax = 1 }) { server in
            let client = try IdentityClient(server)
            let evicted = try client.signUp(Self.email).tokens!
            server.clock.advance(by: .seconds(1))
            _ = try client.signIn(Self.email)
            expectRefusal("TOKEN_EXPIRED", cause: "SIGNED_OUT") { _ = try Self.refresh(client, evicted.refreshToken) }
            // A token with another MAC was never ours.
            let end = evicted.refreshToken.string.hasSuffix("AA") ? "EA" : "AA"
            let flipped = Text("\(evicted.refreshToken.string.dropLast(2))\(end)")
            expectRefusal("INVALID_REFRESH_TOKEN") { _ = try Self.refresh(client, flipped) }
            // By now the session would have ended by itself.
            server.clock.advance(by: .days(400))
            expectRefusal("TOKEN_EXPIRED", cause: "EXPIRED") { _ = try Self.refresh(client, evicted.refreshToken) }
        }
    }
}
