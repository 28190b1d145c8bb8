import Base
import Identity
import Messages
import Service
import TestSupport
import Testing

/// A verifier that follows the feed refuses every token that the server would not accept any more: every way a token
/// can die × what becomes of the account afterwards × which verifier looks, since when.
@Suite struct DeadTokenTests {
    enum Death: CaseIterable {
        case revokedByAdmin, passwordSetByAdmin, emailSetByAdmin, disabled, disabledForAMoment, deletedByAdmin
        case deletedByUser, replacedByImport, sessionRevokedByAdmin, passwordChanged, emailChanged, signedOut
        case signedOutByRefreshToken, signedOutFromElsewhere, refreshTokenReused, tooManySessions, passwordReset
        case emailChangedByCode, emailRecovered, takenOverByProvider, takenOverByLink, tenantDisabled
    }

    enum Afterwards: CaseIterable { case nothing, revokedAgain, createdAgain, importedAgain }

    private static let email: Text = "ada@gmail.com"

    @Test(arguments: Death.allCases, Afterwards.allCases)
    func whatIsDeadToTheServerIsDeadToItsVerifiers(_ death: Death, _ afterwards: Afterwards) async throws {
        try await withServer(configure: { $0.limits.sessionsPerUserMax = 2 }) { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            let born = server.clock.clock.now()
            let bystander = try client.signUp("bob@example.com").tokens!
            let tokens = try client.signUp(Self.email).tokens!
            let cookie = try Self.cookie(client, tokens)
            let follower = try RevocationFollower(server)
            let cursor = follower.cursor
            server.clock.advance(by: .seconds(1))
            let uid = try client.lookup(tokens.idToken).uid
            try Self.kill(client, death, uid, tokens)
            server.clock.advance(by: .seconds(1))
            let isTenants = death == .tenantDisabled
            // A disabled tenant takes no calls, so nothing happens afterwards.
            if !isTenants { try Self.goOn(client, afterwards, uid, bornAt: born) }

            expectSomeRefusal { _ = try client.verify(tokens.idToken) }
            expectSomeRefusal { try client.verify(cookie: cookie) }
            if !isTenants { _ = try client.verify(bystander.idToken) }
            try follower.readOn(until: server.clock.clock.now(), orRefusing: [tokens.idToken, cookie])
            let followers = [
                follower, try RevocationFollower(server, cursor: cursor), try RevocationFollower(server),
                try RevocationFollower(server, anyTenant: true), try RevocationFollower(server, cookies: true),
            ]
            for (index, follower) in followers.enumerated() {
                #expect(follower.refuses(tokens.idToken), "follower \(index)")
                #expect(follower.refuses(cookie), "follower \(index)")
                #expect(follower.refuses(bystander.idToken) == isTenants, "follower \(index)")
            }
        }
    }

    private static func cookie(_ client: IdentityClient, _ tokens: TokenPair) throws -> Text {
        let made: TokensCreateSessionCookieResponse = try client.client.call(
            "postern.v1.Tokens/CreateSessionCookie", TokensCreateSessionCookieRequest(idToken: tokens.idToken))
        return made.sessionCookie
    }

    private static func kill(_ client: IdentityClient, _ death: Death, _ uid: Text, _ tokens: TokenPair) throws {
        switch death {
        case .revokedByAdmin, .passwordSetByAdmin, .emailSetByAdmin, .disabled, .disabledForAMoment, .deletedByAdmin,
            .replacedByImport, .sessionRevokedByAdmin, .tenantDisabled:
            try killAsAdmin(client, death, uid, tokens)
        case .deletedByUser:
            let _: AccountsDeleteResponse = try client.client.call(
                "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: tokens.idToken))
        case .passwordChanged: try change(client, ["password"], tokens) { $0.password = Secret("another horse") }
        case .emailChanged:
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            try change(client, ["email"], tokens) { $0.email = "eve@example.com" }
        case .signedOut: try signOut(client, SessionsSignOutRequest(idToken: tokens.idToken))
        case .signedOutByRefreshToken: try signOut(client, SessionsSignOutRequest(refreshToken: tokens.refreshToken))
        case .signedOutFromElsewhere:
            let other = try client.signIn(email).tokens!
            let _: SessionsRevokeResponse = try client.client.call(
                "postern.v1.Sessions/Revoke", SessionsRevokeRequest(idToken: other.idToken, target: .allOthers(true)))
        case .refreshTokenReused:
            _ = try client.refresh(tokens.refreshToken)
            client.server.clock.advance(by: .minutes(1))
            expectRefusal("TOKEN_EXPIRED") { _ = try client.refresh(tokens.refreshToken) }
        case .tooManySessions:
            for _ in 0..<2 {
                _ = try client.signIn(email)
                client.server.clock.advance(by: .seconds(1))
            }
        case .passwordReset:
            try client.sendOob(.passwordReset, email: email)
            _ = try client.resetPassword(try client.mails()[0].code, "a third horse")
        case .emailChangedByCode: try changeByCode(client, tokens)
        case .emailRecovered:
            try client.verifyEmail(tokens.idToken)
            try changeByCode(client, tokens)
            _ = try client.signIn("eve@example.com")
            let recovery = try #require(try client.mails().first { $0.message.requestType == .recoverEmail })
            _ = try client.applyOob(recovery.code)
        case .takenOverByProvider: _ = try client.signIn(.google("ada", email: email))
        case .takenOverByLink:
            try client.sendOob(.emailSignin, email: email)
            _ = try client.signIn(email, link: try client.mails()[0].code)
        }
    }

    private static func killAsAdmin(
        _ client: IdentityClient, _ death: Death, _ uid: Text, _ tokens: TokenPair
    ) throws {
        switch death {
        case .passwordSetByAdmin: try client.update(uid, ["password"]) { $0.password = Secret("another horse") }
        case .emailSetByAdmin: try client.update(uid, ["email"]) { $0.email = "eve@example.com" }
        case .disabled: try client.update(uid, ["disabled"]) { $0.disabled = true }
        case .disabledForAMoment:
            try client.update(uid, ["disabled"]) { $0.disabled = true }
            try client.update(uid, ["disabled"]) { $0.disabled = false }
        case .deletedByAdmin: try delete(client, uid)
        case .replacedByImport:
            let answer = try ImportTests.importing(
                client.client, [ImportUser(uid: uid, email: email, createdAtMicros: 1)], onConflict: .replace)
            #expect(answer.replacedCount == 1)
        case .sessionRevokedByAdmin:
            let _: UsersRevokeSessionResponse = try client.client.call(
                "postern.v1.Users/RevokeSession",
                UsersRevokeSessionRequest(uid: uid, sessionID: JWTClaims(tokens.idToken).text("sid")))
        case .tenantDisabled: try client.setTenant(["disable_auth"]) { $0.disableAuth = true }
        default: try revokeTokens(client, uid)
        }
    }

    /// Does what must not bring a dead token back, least of all in a snapshot.
    private static func goOn(
        _ client: IdentityClient, _ afterwards: Afterwards, _ uid: Text, bornAt born: Timestamp
    ) throws {
        let isThere = (try? client.get(uid)) != nil
        switch afterwards {
        case .nothing: return
        case .revokedAgain: if isThere { try revokeTokens(client, uid) }
        case .createdAgain:
            if isThere { try delete(client, uid) }
            let _: UsersCreateResponse = try client.client.call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: uid, email: email))
        case .importedAgain:
            if isThere { try delete(client, uid) }
            client.server.clock.advance(by: .seconds(1))
            let answer = try ImportTests.importing(
                client.client, [ImportUser(uid: uid, email: email, createdAtMicros: born.microseconds)])
            #expect(answer.createdCount == 1)
        }
    }

    private static func change(
        _ client: IdentityClient, _ paths: [Text], _ tokens: TokenPair, _ set: (inout AccountsUpdateRequest) -> Void
    ) throws {
        var request = AccountsUpdateRequest(idToken: tokens.idToken, updateMask: ProtobufFieldMask(paths: paths))
        set(&request)
        let _: AccountsUpdateResponse = try client.client.call("postern.v1.Accounts/Update", request)
    }

    private static func changeByCode(_ client: IdentityClient, _ tokens: TokenPair) throws {
        try client.sendOob(.verifyAndChangeEmail, newEmail: "eve@example.com", idToken: tokens.idToken)
        _ = try client.applyOob(try client.mails()[0].code)
        client.server.clock.advance(by: .milliseconds(1))
    }

    private static func signOut(_ client: IdentityClient, _ request: SessionsSignOutRequest) throws {
        let _: SessionsSignOutResponse = try client.client.call("postern.v1.Sessions/SignOut", request)
    }

    private static func revokeTokens(_ client: IdentityClient, _ uid: Text) throws {
        let _: UsersRevokeTokensResponse = try client.client.call(
            "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid))
    }

    private static func delete(_ client: IdentityClient, _ uid: Text) throws {
        let _: UsersDeleteResponse = try client.client.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
    }
}

/// Expects a refusal for any reason: other tests check the reason.
private func expectSomeRefusal(_ body: () throws -> Void) { #expect(throws: Failure.self) { try body() } }

extension IdentityClient {
    fileprivate func verify(_ idToken: Text) throws -> TokensVerifyIdTokenResponse {
        try client.call("postern.v1.Tokens/VerifyIdToken", TokensVerifyIdTokenRequest(idToken: idToken))
    }

    fileprivate func verify(cookie: Text) throws {
        let _: TokensVerifySessionCookieResponse = try client.call(
            "postern.v1.Tokens/VerifySessionCookie", TokensVerifySessionCookieRequest(sessionCookie: cookie))
    }
}

/// A watcher that does with revocations what docs/protocol.md says, in the plainest way.
private final class RevocationFollower {
    private let stream: RawStream<TokensWatchRevocationsResponse>
    private var revocations: [Revocation] = []
    private(set) var cursor = Text.empty

    /// Returns when the follower has read the revocations that there were.
    init(_ server: TestServer, cursor: Text = .empty, anyTenant: Bool = false, cookies: Bool = false) throws {
        stream = try RawStream(
            server, "postern.v1.Tokens/WatchRevocations",
            TokensWatchRevocationsRequest(
                anyTenant: anyTenant, cursor: cursor, heartbeatSeconds: 1, sessionCookies: cookies))
        while try read().continues {}
    }

    func readOn(until time: Timestamp, orRefusing tokens: [Text]) throws {
        while !tokens.allSatisfy(refuses), try read().timeMicros < time.microseconds {}
    }

    private func read() throws -> TokensWatchRevocationsResponse {
        let message = try #require(try stream.next())
        if message.snapshotReason != .unspecified { revocations = [] }
        revocations += message.revocations
        cursor = message.cursor
        return message
    }

    func refuses(_ token: Text) -> Bool {
        let claims = JWTClaims(token)
        var isTenantDisabled = false
        for revocation in revocations {
            switch revocation.kind {
            case .user:
                let isOfUser = revocation.uid == claims.text("sub")
                if isOfUser && claims.integer("gen") < revocation.validAfterMicros { return true }
            case .session: if revocation.sessionID == claims.text("sid") { return true }
            case .tenantDisabled: isTenantDisabled = true
            case .tenantEnabled: isTenantDisabled = false
            case .tenantDeleted, .signingKey, .unspecified: break
            }
        }
        return isTenantDisabled
    }
}
