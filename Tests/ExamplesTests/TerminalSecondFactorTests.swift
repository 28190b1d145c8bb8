import Base
import Messages
import TestSupport
import Testing

/// Second factors in the terminal example, as its user meets them. oathtool makes the codes of the authenticator app.
@Suite struct TerminalSecondFactorTests {
    private static let number = "+14155550123"

    /// A server where users may have second factors and ada has a verified email. Codes for her phone are known.
    private static func run(
        _ state: SecondFactorState = .enabled, verified: Bool = true, _ body: (TestServer) throws -> Void
    ) async throws {
        try await withServer { server in
            let admin = try server.connect()
            let tenant = Tenant(
                testPhoneNumbers: [TestPhoneNumber(phoneNumber: Text(number), code: "123456")],
                secondFactorState: .enabled)
            try setTenant(tenant, ["second_factor_state", "test_phone_numbers"], by: admin)
            let _: UsersCreateResponse = try admin.call(
                "postern.v1.Users/Create",
                UsersCreateRequest(
                    uid: "ada", email: "ada@example.com", emailVerified: verified, password: Secret("correct horse")))
            try setTenant(Tenant(secondFactorState: state), ["second_factor_state"], by: admin)
            try body(server)
        }
    }

    private static func setTenant(_ tenant: Tenant, _ paths: [Text], by admin: RawClient) throws {
        let _: TenantsUpdateResponse = try admin.call(
            "postern.v1.Tenants/Update",
            TenantsUpdateRequest(tenant: tenant, updateMask: ProtobufFieldMask(paths: paths)))
    }

    private static let signIn: [Step] = [
        .type("sign-in ada@example.com"), .expect("password: "), .type("correct horse"),
    ]

    @Test func `An authenticator app is added, and its codes finish every sign-in`() async throws {
        try await Self.run { server in
            let now = server.clock.clock.now()
            let secret = "type its secret: "
            let shown = try drive(
                server,
                [.expect("* nobody is signed in")] + Self.signIn + [
                    .expect("* signed in as ada@example.com"), .type("add-factor"), .expect(secret), .expect("code: "),
                    .type("000000"), .expect("that is not the code"), .typeTOTP(ofSecretBehind: secret, at: now),
                    .expect("added"), .expect("recovery code: "), .type("sign-out"), .expect("* signed out"),
                ] + Self.signIn + [
                    .expect("a second factor is required"), .expect("1  authenticator app"), .expect("recovery code: "),
                    .type("1"), .expect("code: "),
                    // A code is good once, and for one step of 30 seconds before and after its own.
                    .typeTOTP(ofSecretBehind: secret, at: now), .expect("that is not the code"),
                    .typeTOTP(ofSecretBehind: secret, at: now + .seconds(30)),
                    .expect("* signed in as ada@example.com"), .type("token"),
                    .expect("signed in with password and totp"), .type("factors"),
                    .expect("10 recovery codes are left"), .type("quit"),
                ])
            #expect(shown.contains("▀") && shown.contains("█"), "no QR code was drawn")
        }
    }

    @Test func `A code by SMS finishes a sign-in, and so does a recovery code`() async throws {
        try await Self.run { server in
            _ = try drive(
                server,
                [.expect("* nobody is signed in")] + Self.signIn + [
                    .expect("* signed in as"), .type("add-factor phone \(Self.number)"), .expect("code: "),
                    .type("123456"), .expect("recovery code: "), .type("sign-out"), .expect("* signed out"),
                ] + Self.signIn + [
                    .expect("1  SMS to "), .expect("0123"), .expect("recovery code: "), .type("1"), .expect("code: "),
                    .type("654321"), .expect("that is not the code"), .type("123456"), .expect("* signed in as"),
                    .type("token"), .expect("signed in with password and phone"),
                    // The new codes replace those that were shown when the factor was added.
                    .type("recovery-codes"), .expect("  recovery code: "), .type("sign-out"), .expect("* signed out"),
                ] + Self.signIn + [
                    .expect("number of a factor"), .typeWhatFollowed("  recovery code: "), .expect("* signed in as"),
                    .type("factors"), .expect("9 recovery codes are left"), .type("quit"),
                ])
        }
    }

    @Test func `Where a second factor is mandatory the first sign-in adds one`() async throws {
        try await Self.run(.mandatory) { server in
            _ = try drive(
                server,
                [.expect("* nobody is signed in")] + Self.signIn + [
                    .expect("add one"), .type("phone \(Self.number)"), .expect("code: "), .type("123456"),
                    .expect("recovery code: "), .type("whoami"), .expect("ada@example.com ("), .type("token"),
                    .expect("signed in with password and phone"), .type("quit"),
                ])
        }
    }
}
