import Base
import Identity
import Messages
import Rules
import TestSupport
import Testing

/// A tenant is closed, or its ways to sign in are switched off, between the proof of an end user and the session.
@Suite struct ClosedMeanwhileTests {
    enum Closing: CaseIterable, Sendable {
        case methods, authentication, tenant

        func close(_ admin: IdentityClient) throws {
            switch self {
            case .methods:
                try admin.setTenant([
                    "allow_password_signup", "enable_anonymous_user", "enable_email_link_signin", "enable_phone_signin",
                ]) { close(&$0) }
            case .authentication: try admin.setTenant(["disable_auth"]) { close(&$0) }
            case .tenant: try admin.setTenant(["suspended"]) { close(&$0) }
            }
        }

        func close(_ tenant: inout Messages.Tenant) {
            switch self {
            case .methods:
                tenant.allowPasswordSignup = false
                tenant.enableAnonymousUser = false
                tenant.enableEmailLinkSignin = false
                tenant.enablePhoneSignin = false
            case .authentication: tenant.disableAuth = true
            case .tenant: tenant.suspended = true
            }
        }

        /// The refusal of a password.
        var reasonOfPassword: String {
            switch self {
            case .methods: "PASSWORD_LOGIN_DISABLED"
            case .authentication: "PROJECT_DISABLED"
            case .tenant: "TENANT_SUSPENDED"
            }
        }
    }

    private static func userCount(_ client: IdentityClient) throws -> Int {
        let page: UsersListResponse = try client.client.call("postern.v1.Users/List", UsersListRequest())
        return page.users.count
    }

    // MARK: A sign-in that waits for a hook

    /// Every way to sign in × what is closed while the hook is asked. The refusal is that of a call that comes later.
    @Test(arguments: SignInWay.all, Closing.allCases)
    func `Nobody comes in by what was closed after the proof`(_ way: SignInWay, _ closing: Closing) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            if !way.isSignUp { try way.makeKnown(client, "old") }
            let userCount = try Self.userCount(client)
            let wasAsked = BlockingHookTests.Flag()
            let hook = ActingHook(point: \.beforeSignIn, field: "before_sign_in") {
                wasAsked.set()
                try closing.close(try IdentityClient(server))
            }
            try hook.run(client) {
                let refused = failure { try way.signIn(client, "old") }
                #expect(wasAsked.isSet)
                // A method without a switch of the tenant's stays open.
                let staysOpen = closing == .methods && way.driver.methodSwitch == .always
                #expect(refused.reason.isEmpty == staysOpen, "\(refused.reason)")
                let later = failure { try way.signIn(client, "old") }
                #expect(later.reason == refused.reason)
                // Users of a disabled tenant are not listed.
                try client.setTenant(["disable_auth"]) { $0.disableAuth = false }
                let countAfter = try Self.userCount(client)
                #expect(countAfter == userCount)
            }
        }
    }

    /// An anonymous user could never show a factor.
    @Test func `No anonymous user is made once second factors are mandatory`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            let hook = ActingHook(point: \.beforeSignIn, field: "before_sign_in") {
                try IdentityClient(server).setFactors(.mandatory)
            }
            try hook.run(client) { expectRefusal("ADMIN_ONLY_OPERATION") { _ = try client.signUp() } }
            #expect(try Self.userCount(client) == 0)
        }
    }

    @Test func `A user who is deleted after the proof does not come in`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signUp("ada@example.com").user?.uid)
            let hook = ActingHook(point: \.beforeSignIn, field: "before_sign_in") {
                let _: UsersDeleteResponse = try server.connect().call(
                    "postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
            }
            try hook.run(client) {
                expectRefusal("INVALID_LOGIN_CREDENTIALS") { _ = try client.signIn("ada@example.com") }
            }
            #expect(try Self.userCount(client) == 0)
        }
    }

    // MARK: A change or a factor that waits for the writer

    @Test(arguments: Closing.allCases)
    func `Nobody proves itself again by what was closed after the proof`(_ closing: Closing) async throws {
        try await withServer { server in
            let idToken = try #require(try IdentityClient(server).signUp("ada@example.com").tokens).idToken
            let refused = try await failureOfOvertakenCall(server, overtakenBy: { closing.close(&$0) }) {
                _ = try LinkTests.reauthenticate($0, idToken, LinkTests.password("ada@example.com", "correct horse"))
            }
            #expect(refused.reason == closing.reasonOfPassword)
        }
    }

    @Test func `A link in the mail is not linked once links are switched off`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            let made = try client.signIn(customTokenFor: "ada")
            let idToken = try #require(made.tokens).idToken
            try client.sendOob(.emailSignin, email: "ada@example.com")
            let code = try #require(try client.mails().first).code
            let refused = try await failureOfOvertakenCall(
                server, overtakenBy: { $0.enableEmailLinkSignin = false }
            ) {
                let _: AccountsSignInWithEmailLinkResponse = try $0.client.call(
                    "postern.v1.Accounts/SignInWithEmailLink",
                    AccountsSignInWithEmailLinkRequest(email: "ada@example.com", oobCode: code, idToken: idToken))
            }
            #expect(refused.reason == "OPERATION_NOT_ALLOWED")
            #expect(try client.get("ada").email.isEmpty)
        }
    }

    @Test(arguments: [Closing.authentication, .tenant])
    func `A second factor does not finish a sign-in of a tenant that was closed`(_ closing: Closing) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let pending = try client.pending(user)
            let refused = try await failureOfOvertakenCall(server, overtakenBy: { closing.close(&$0) }) {
                _ = try $0.finish(pending, user)
            }
            #expect(refused.reason == closing.reasonOfPassword)
        }
    }
}
