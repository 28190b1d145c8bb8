import Base
import Identity
import Messages
import TestSupport
import Testing

/// The messages to a client that watches a session.
@Suite struct WatchAuthStateTests {
    private typealias Stream = RawStream<SessionsWatchAuthStateResponse>

    /// Two sessions of one account, of which the first is watched.
    private struct Scene {
        let client: IdentityClient
        let uid: Text
        let watched: TokenPair
        let other: TokenPair
        let stream: Stream

        init(_ server: TestServer) throws {
            client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            uid = made.user!.uid
            watched = made.tokens!
            server.clock.advance(by: .seconds(1))
            other = try client.signIn("ada@example.com").tokens!
            stream = try Scene.watch(server, watched)
            let first = try #require(try stream.next())
            #expect(first.change == .initial)
            #expect(first.user?.email == "ada@example.com")
            #expect(first.session?.current == true)
            server.clock.advance(by: .seconds(1))
        }

        static func watch(_ server: TestServer, _ tokens: TokenPair, apiKey: Secret? = nil) throws -> Stream {
            try Stream(
                server, "postern.v1.Sessions/WatchAuthState", SessionsWatchAuthStateRequest(idToken: tokens.idToken),
                apiKey: apiKey)
        }

        /// Expects that the next message is the last, and says so.
        func expectEnd(_ change: AuthStateChange, cause: Text = .empty) throws {
            let last = try #require(try stream.next())
            #expect(last.change == change)
            #expect(last.endCause == cause)
            #expect(try stream.next() == nil)
        }
    }

    @Test func aRefreshIsTold() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            _ = try scene.client.refresh(scene.watched.refreshToken)
            let told = try #require(try scene.stream.next())
            #expect(told.change == .tokenRefreshed)
            #expect(told.refreshCause == .expired)
        }
    }

    @Test func aRefreshOfASessionWhoseTokenStaysTheSameIsToldToo() async throws {
        try await withServer { server in
            try IdentityClient(server).setTenant(["refresh_mode"]) { $0.refreshMode = .reuse }
            let scene = try Scene(server)
            _ = try scene.client.refresh(scene.watched.refreshToken)
            #expect(try scene.stream.next()?.refreshCause == .expired)
        }
    }

    @Test func aPasswordChangeHereIsARefreshAndElsewhereASignOut() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let elsewhere = try Scene.watch(server, scene.other)
            #expect(try elsewhere.next()?.change == .initial)
            let _: AccountsUpdateResponse = try scene.client.client.call(
                "postern.v1.Accounts/Update",
                AccountsUpdateRequest(
                    idToken: scene.watched.idToken, updateMask: ProtobufFieldMask(paths: ["password"]),
                    password: Secret("another horse")))
            let told = try #require(try scene.stream.next())
            #expect(told.change == .tokenRefreshed)
            #expect(told.refreshCause == .passwordChanged)
            expectRefusal("TOKEN_EXPIRED", cause: "PASSWORD_CHANGED") { _ = try scene.stream.next() }
            let last = try #require(try elsewhere.next())
            #expect(last.change == .signedOut)
            #expect(last.endCause == "PASSWORD_CHANGED")
            #expect(try elsewhere.next() == nil)
        }
    }

    /// Perhaps the user has changed the password because somebody else has the token.
    @Test(arguments: ["password", "email"])
    func `A stream ends when its ID token is void, and shows nothing of the account any more`(
        changed: Text
    ) async throws {
        try await withServer { server in
            try IdentityClient(server).setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            let scene = try Scene(server)
            let answer: AccountsUpdateResponse = try scene.client.client.call(
                "postern.v1.Accounts/Update",
                AccountsUpdateRequest(
                    idToken: scene.watched.idToken, updateMask: ProtobufFieldMask(paths: [changed]),
                    password: Secret("another horse"), email: "new@example.org"))
            let told = try #require(try scene.stream.next())
            #expect(told.change == .tokenRefreshed && told.user == nil && told.session == nil)
            expectRefusal("TOKEN_EXPIRED") { _ = try scene.stream.next() }
            expectRefusal("TOKEN_EXPIRED") { _ = try Scene.watch(server, scene.watched).next() }
            let next = try Scene.watch(server, try #require(answer.tokens))
            #expect(try next.next()?.user?.uid == scene.uid)
        }
    }

    @Test func provingAgainIsARefresh() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let credential = EmailPasswordCredential(email: "ada@example.com", password: Secret("correct horse"))
            let _: AccountsReauthenticateResponse = try scene.client.client.call(
                "postern.v1.Accounts/Reauthenticate",
                AccountsReauthenticateRequest(idToken: scene.watched.idToken, credential: .password(credential)))
            #expect(try scene.stream.next()?.refreshCause == .reauthenticated)
        }
    }

    @Test func linkingIsARefreshThatBringsTheProvidersAlong() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            _ = try scene.client.signIn(.github("h-1", email: "x@example.com"), linkingTo: scene.watched.idToken)
            let told = try #require(try scene.stream.next())
            #expect(told.refreshCause == .providersChanged)
            #expect(told.user?.providers.map(\.providerID).contains("github.com") == true)
        }
    }

    @Test func whatAnotherDeviceOrAnAdminChangesOfTheProfileIsTold() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let _: AccountsUpdateResponse = try scene.client.client.call(
                "postern.v1.Accounts/Update",
                AccountsUpdateRequest(
                    idToken: scene.other.idToken, updateMask: ProtobufFieldMask(paths: ["display_name"]),
                    displayName: "Ada"))
            let byUser = try #require(try scene.stream.next())
            #expect(byUser.change == .profileChanged)
            #expect(byUser.user?.displayName == "Ada")
            try scene.client.update(scene.uid, ["photo_url"]) { $0.photoURL = "https://a.example/a.png" }
            let byAdmin = try #require(try scene.stream.next())
            #expect(byAdmin.change == .profileChanged)
            #expect(byAdmin.user?.photoURL == "https://a.example/a.png")
        }
    }

    enum Ending: CaseIterable { case signOut, revoked, reuse, tokensRevoked, disabled, deleted }

    @Test(arguments: Ending.allCases)
    func theStreamEndsWithTheSessionAndSaysWhy(_ ending: Ending) async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let raw = scene.client.client
            switch ending {
            case .signOut:
                let _: SessionsSignOutResponse = try raw.call(
                    "postern.v1.Sessions/SignOut", SessionsSignOutRequest(idToken: scene.watched.idToken))
                try scene.expectEnd(.signedOut, cause: "SIGNED_OUT")
            case .revoked:
                let _: SessionsRevokeResponse = try raw.call(
                    "postern.v1.Sessions/Revoke",
                    SessionsRevokeRequest(idToken: scene.other.idToken, target: .allOthers(true)))
                try scene.expectEnd(.signedOut, cause: "SIGNED_OUT")
            case .reuse:
                _ = try scene.client.refresh(scene.watched.refreshToken)
                #expect(try scene.stream.next()?.change == .tokenRefreshed)
                server.clock.advance(by: .minutes(1))
                expectRefusal("TOKEN_EXPIRED") { _ = try scene.client.refresh(scene.watched.refreshToken) }
                try scene.expectEnd(.signedOut, cause: "REVOKED_BY_REUSE")
            case .tokensRevoked:
                let _: UsersRevokeTokensResponse = try raw.call(
                    "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: scene.uid))
                try scene.expectEnd(.signedOut, cause: "ADMIN")
            case .disabled:
                try scene.client.update(scene.uid, ["disabled"]) { $0.disabled = true }
                try scene.expectEnd(.disabled)
            case .deleted:
                let _: UsersDeleteResponse = try raw.call(
                    "postern.v1.Users/Delete", UsersDeleteRequest(uid: scene.uid))
                try scene.expectEnd(.deleted)
            }
        }
    }

    @Test func theStreamOutlivesItsIDToken() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            server.clock.advance(by: .hours(3))
            try scene.client.update(scene.uid, ["display_name"]) { $0.displayName = "Ada" }
            #expect(try scene.stream.next()?.change == .profileChanged)
        }
    }

    @Test func aTenantThatIsSwitchedOffEndsItsStreams() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            try scene.client.setTenant(["disable_auth"]) { $0.disableAuth = true }
            expectRefusal("PROJECT_DISABLED") { _ = try scene.stream.next() }
        }
    }

    @Test func aRevokedAPIKeyEndsTheStreamsItBegan() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let made: ProjectCreateApiKeyResponse = try scene.client.client.call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .all(true))))
            let stream = try Scene.watch(server, scene.other, apiKey: made.secretKey)
            #expect(try stream.next()?.change == .initial)
            let _: ProjectRevokeApiKeyResponse = try scene.client.client.call(
                "postern.v1.Project/RevokeApiKey",
                ProjectRevokeApiKeyRequest(apiKeyID: made.apiKey?.apiKeyID ?? .empty))
            expectRefusal("CALLER_UNAUTHENTICATED") { _ = try stream.next() }
        }
    }

    @Test func aTokenThatIsNoneWatchesNothing() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            _ = try scene.client.signUp("bob@example.com")
            expectRefusal("INVALID_ID_TOKEN") {
                _ = try Scene.watch(server, TokenPair(idToken: "x.y.z")).next()
            }
            expectRefusal("MISSING_ID_TOKEN") { _ = try Scene.watch(server, TokenPair()).next() }
        }
    }

    @Test func whatAnotherUserDoesIsNotTold() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let bob = try scene.client.signUp("bob@example.com")
            try scene.client.update(bob.user!.uid, ["display_name"]) { $0.displayName = "Bob" }
            try scene.client.update(scene.uid, ["display_name"]) { $0.displayName = "Ada" }
            #expect(try scene.stream.next()?.user?.displayName == "Ada")
        }
    }

    @Test func signingInElsewhereIsNoNewsOfTheAccount() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            _ = try scene.client.signIn("ada@example.com")
            try scene.client.update(scene.uid, ["display_name"]) { $0.displayName = "Ada" }
            #expect(try scene.stream.next()?.user?.displayName == "Ada")
        }
    }

    @Test func aWatcherWhoDoesNotReadIsToldTheNewestOnly() async throws {
        try await withServer { server in
            let scene = try Scene(server)
            let slow = try Stream(
                server, "postern.v1.Sessions/WatchAuthState",
                SessionsWatchAuthStateRequest(idToken: scene.watched.idToken), initialWindow: 1)
            #expect(try slow.next()?.change == .initial)
            for number in 0..<50 {
                try scene.client.update(scene.uid, ["display_name"]) { $0.displayName = Text("Ada \(number)") }
            }
            // One message was under way when the window closed; with room again comes the newest.
            try slow.grant(1 << 20)
            var names: [Text] = []
            while names.last != "Ada 49" { names.append(try #require(try slow.next()).user?.displayName ?? .empty) }
            #expect(names.count <= 3)
        }
    }
}
