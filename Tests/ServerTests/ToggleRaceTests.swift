import Base
import Messages
import TestSupport
import Testing

/// A self-service toggle is switched while a call that was admitted before is on its way.
@Suite struct ToggleRaceTests {
    private static func userCount(_ client: IdentityClient) throws -> Int {
        let page: UsersListResponse = try client.client.call("postern.v1.Users/List", UsersListRequest())
        return page.users.count
    }

    // MARK: A sign-up that waits for a hook

    /// Runs `body` with a hook that switches sign-up off before it answers.
    private static func runWithHook(_ body: (IdentityClient) throws -> Void) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_anonymous_user"]) { $0.enableAnonymousUser = true }
            let hook = ActingHook(point: \.beforeCreate, field: "before_create") {
                try ToggleTests.set(try server.connect(), signup: true, deletion: false)
            }
            try hook.run(client) { try body(client) }
        }
    }

    @Test func aSignUpThatWasAdmittedBeforeIsRefusedAndRecorded() async throws {
        try await Self.runWithHook { client in
            let ways: [(String, () throws -> Void)] = [
                ("password", { _ = try client.signUp("ada@example.com") }),
                ("anonymous", { _ = try client.signUp() }),
                ("identity", { _ = try client.signIn(.google()) }),
                ("custom token", { _ = try client.signIn(customTokenFor: "bob") }),
            ]
            for (name, signIn) in ways {
                try ToggleTests.set(client.client, signup: false, deletion: false)
                let refused = failure { try signIn() }
                #expect(refused.reason == "ADMIN_RESTRICTED_OPERATION", "\(name)")
                ToggleTests.expectRestricted(refused, .disabledUserSignup)
            }
            #expect(try Self.userCount(client) == 0)
            let listed: TenantsListDenialsResponse = try client.client.call(
                "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest())
            #expect(listed.denials.count == ways.count)
        }
    }

    // MARK: A call that waits for the writer

    private static func failureOfCall(
        _ server: TestServer, overtakenBy signup: Bool, _ deletion: Bool,
        _ call: @escaping @Sendable (IdentityClient) throws -> Void
    ) async throws -> Failure {
        try await failureOfOvertakenCall(
            server,
            overtakenBy: {
                $0.client = ClientConfig(
                    permissions: ClientPermissions(disabledUserSignup: signup, disabledUserDeletion: deletion))
            }, call)
    }

    @Test func aDeletionThatWasAdmittedBeforeIsRefused() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let idToken = made.tokens!.idToken
            let refused = try await Self.failureOfCall(server, overtakenBy: false, true) {
                let _: AccountsDeleteResponse = try $0.client.call(
                    "postern.v1.Accounts/Delete", AccountsDeleteRequest(idToken: idToken))
            }
            ToggleTests.expectRestricted(refused, .disabledUserDeletion)
            #expect(try client.get(made.user!.uid).email == "ada@example.com")
        }
    }

    @Test func givingUpTheLastWayInThatWasAdmittedBeforeIsRefused() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signIn(.google())
            let idToken = made.tokens!.idToken
            let refused = try await Self.failureOfCall(server, overtakenBy: false, true) {
                _ = try LinkTests.unlink($0, "google.com", idToken, force: true)
            }
            ToggleTests.expectRestricted(refused, .disabledUserDeletion)
            #expect(try client.get(made.user!.uid).providers.count == 1)
        }
    }

    /// No hook is asked about a sign-up that the toggle refuses, so it is refused even if the toggle is gone by then.
    ///
    /// In a cluster the call is admitted behind the write that it waits for here, so that it has no earlier settings.
    @Test(.enabled(if: TestEngine.address == nil))
    func aSignUpThatTheToggleRefusedAtItsStartStaysRefused() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try ToggleTests.set(client.client, signup: true, deletion: false)
            let token = try client.customToken(for: "bob")
            let refused = try await Self.failureOfCall(server, overtakenBy: false, false) {
                let _: AccountsSignInWithCustomTokenResponse = try $0.client.call(
                    "postern.v1.Accounts/SignInWithCustomToken", AccountsSignInWithCustomTokenRequest(token: token))
            }
            ToggleTests.expectRestricted(refused, .disabledUserSignup)
            #expect(try Self.userCount(client) == 0)
        }
    }

    @Test func aPasswordResetThatWasAdmittedBeforeMakesNoAccount() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let code = try BlockingHookTests.mallorysCode(client).code
            let refused = try await Self.failureOfCall(server, overtakenBy: true, false) {
                _ = try $0.resetPassword(code, "another horse")
            }
            #expect(refused.reason == "INVALID_OOB_CODE")
            #expect(try Self.userCount(client) == 1)
        }
    }
}
