import Base
import Identity
import Messages
import TestSupport
import Testing

/// The sign-up toggle against every method by which an end user could come into being, and against the same methods
/// used by a user who is there already.
@Suite struct FirstSignInToggleTests {
    enum Way: CaseIterable { case password, anonymous, trustedProvider, untrustedProvider, emailLink, customToken }

    @Test(arguments: Way.allCases, [false, true])
    func nobodyComesIntoBeingWhereTheToggleSaysSo(_ way: Way, _ isOff: Bool) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.allowEverything(client)
            try Self.setSignUp(client, off: isOff)
            let refused = failure { try Self.enter(client, way, "new") }
            // An unknown address is sent no link at all: there is nothing to refuse.
            let expected = !isOff ? "" : way == .emailLink ? "no mail" : "ADMIN_RESTRICTED_OPERATION"
            #expect(refused.reason == expected)
            let listed: UsersListResponse = try client.client.call("postern.v1.Users/List", UsersListRequest())
            #expect(listed.users.count == (isOff ? 0 : 1))
            let denials: TenantsListDenialsResponse = try client.client.call(
                "postern.v1.Tenants/ListDenials", TenantsListDenialsRequest())
            #expect(denials.denials.count == (expected == "ADMIN_RESTRICTED_OPERATION" ? 1 : 0))
        }
    }

    @Test(arguments: Way.allCases)
    func whoIsThereAlreadyIsNotTouched(_ way: Way) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try Self.allowEverything(client)
            try Self.enter(client, way, "old")
            try Self.setSignUp(client, off: true)
            let again = failure { try Self.enter(client, way, "old", again: true) }
            // An anonymous user has no way to sign in again: to try is to sign up.
            #expect(again.reason == (way == .anonymous ? "ADMIN_RESTRICTED_OPERATION" : ""))
        }
    }

    private static func allowEverything(_ client: IdentityClient) throws {
        try client.setTenant(["enable_anonymous_user", "enable_email_link_signin"]) {
            $0.enableAnonymousUser = true
            $0.enableEmailLinkSignin = true
        }
    }

    private static func setSignUp(_ client: IdentityClient, off: Bool) throws {
        try client.setTenant(["client.permissions.disabled_user_signup"]) {
            $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: off))
        }
    }

    private static func enter(
        _ client: IdentityClient, _ way: Way, _ name: Text, again: Bool = false
    ) throws {
        let email = Text("\(name)@example.com")
        switch way {
        case .password: if again { _ = try client.signIn(email) } else { _ = try client.signUp(email) }
        case .anonymous: _ = try client.signUp()
        case .trustedProvider: _ = try client.signIn(.google(name, email: email))
        case .untrustedProvider: _ = try client.signIn(.github(name, email: email))
        case .emailLink:
            try client.sendOob(.emailSignin, email: email)
            guard let mail = try client.mails().first else { throw Failure(.notFound, "no mail", "") }
            _ = try client.signIn(email, link: mail.code)
        case .customToken: _ = try client.signIn(customTokenFor: name)
        }
    }
}
