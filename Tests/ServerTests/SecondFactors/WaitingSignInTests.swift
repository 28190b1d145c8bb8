import Base
import Messages
import TestSupport
import Testing

/// Sign-ins that wait for a second factor, while an admin takes away what they began with.
@Suite struct WaitingSignInTests {
    private static let number = SecondFactorSignInTests.number

    enum Way: CaseIterable, Sendable {
        case password, link, phone

        var path: Text {
            switch self {
            case .password: "allow_password_signup"
            case .link: "enable_email_link_signin"
            case .phone: "enable_phone_signin"
            }
        }

        func signIn(_ client: IdentityClient, _ email: Text) throws {
            switch self {
            case .password: _ = try client.signIn(email)
            case .link:
                try client.sendOob(.emailSignin, email: email)
                _ = try client.signIn(email, link: try client.mails()[0].code)
            case .phone: _ = try client.signIn(phone: WaitingSignInTests.number)
            }
        }

        func allow(_ isOn: Bool, _ client: IdentityClient) throws {
            try client.setTenant([path]) {
                ($0.allowPasswordSignup, $0.enableEmailLinkSignin, $0.enablePhoneSignin) = (isOn, isOn, isOn)
            }
        }
    }

    /// A tenant with all ways to sign in, and a user with all of them and an authenticator app.
    private static func run(_ body: (IdentityClient, AppUser) throws -> Void) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setFactors(.enabled)
            let user = try client.appUser("ada@gmail.com")
            try client.update(user.uid, ["phone_number"]) { $0.phoneNumber = Self.number }
            try body(client, user)
        }
    }

    @Test(arguments: Way.allCases)
    func `A method that is switched off finishes no sign-in`(way: Way) async throws {
        try await Self.run { client, user in
            let pending = try client.pending { try way.signIn(client, user.email) }
            let others = try Way.allCases.filter { $0 != way }.map { other in
                try client.pending { try other.signIn(client, user.email) }
            }
            try way.allow(false, client)
            expectRefusal("OPERATION_NOT_ALLOWED") { _ = try client.finish(pending, user) }
            expectRefusal("OPERATION_NOT_ALLOWED") { _ = try client.startSMS(pending, user.factorID) }
            for other in others {
                _ = try client.finish(other, user)
                client.server.clock.advance(by: .seconds(30))
            }
            // A refused sign-in is not over: the admin may think again.
            try way.allow(true, client)
            _ = try client.finish(pending, user)
        }
    }

    @Test func `A method that is switched off enrolls no factor`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.mandatory)
            let stopped = failure { _ = try client.signUp("ada@example.com") }
            let credential = Text(stopped.metadata("enrollment_credential") ?? "")
            _ = try client.lookup(credential)
            try Way.password.allow(false, client)
            expectRefusal("OPERATION_NOT_ALLOWED") { _ = try client.lookup(credential) }
            expectRefusal("OPERATION_NOT_ALLOWED") { _ = try client.startApp(credential) }
        }
    }

    @Test(arguments: ["+14155550177", ""] as [Text])
    func `A phone number that is not the account's any more finishes no sign-in`(newNumber: Text) async throws {
        try await Self.run { client, user in
            let byPhone = try client.pending { try Way.phone.signIn(client, user.email) }
            let byPassword = try client.pending(user)
            try client.update(user.uid, ["phone_number"]) { $0.phoneNumber = newNumber }
            expectRefusal("INVALID_MFA_PENDING_CREDENTIAL") { _ = try client.finish(byPhone, user) }
            // Sign-ins by other methods and the sessions go on: `revoke_tokens` ends them.
            _ = try client.finish(byPassword, user)
            _ = try client.lookup(user.tokens.idToken)
        }
    }

    /// The phone is a second factor as well, which is not offered to a sign-in by the same phone.
    @Test func `The thief of a phone does not use it twice when the account has another number`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setFactors(.enabled)
            let enrolled = try client.enrollPhone(Self.number, try client.verifiedUser("ada@example.com").idToken)
            let uid = try #require(enrolled.user).uid
            try client.update(uid, ["phone_number"]) { $0.phoneNumber = Self.number }
            let pending = try client.pending { _ = try client.signIn(phone: Self.number) }
            expectRefusal("MFA_ENROLLMENT_NOT_FOUND") { _ = try client.startSMS(pending, enrolled.factorID) }
            try client.update(uid, ["phone_number"]) { $0.phoneNumber = "+14155550177" }
            expectRefusal("INVALID_MFA_PENDING_CREDENTIAL") { _ = try client.startSMS(pending, enrolled.factorID) }
        }
    }

    @Test(arguments: ["google.com", "password"] as [Text])
    func `An identity that an admin unlinked finishes no sign-in`(providerID: Text) async throws {
        try await Self.run { client, user in
            _ = try client.finish(try client.pending { _ = try client.signIn(.google()) }, user)
            client.server.clock.advance(by: .seconds(30))
            let pending = try client.pending {
                if providerID == "password" {
                    _ = try client.signIn(user.email)
                } else {
                    _ = try client.signIn(.google())
                }
            }
            let _: UsersUnlinkResponse = try client.client.call(
                "postern.v1.Users/Unlink", UsersUnlinkRequest(uid: user.uid, providerID: providerID))
            expectRefusal("INVALID_MFA_PENDING_CREDENTIAL") { _ = try client.finish(pending, user) }
        }
    }
}
