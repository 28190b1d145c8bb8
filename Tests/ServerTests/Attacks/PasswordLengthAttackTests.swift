import Base
import Crypto
import Identity
import Messages
import TestSupport
import Testing

/// Passwords that nobody can have: too long ones, some made of what a normaliser takes longest over.
@Suite struct PasswordLengthAttackTests {
    /// Alternating marks above and below: Swift's normaliser takes quadratic time over them.
    private static func marks(_ byteCount: Int) -> Secret {
        Secret([UInt8](("a" + String(repeating: "\u{301}\u{316}", count: (byteCount - 1) / 4)).utf8))
    }

    private static func ascii(_ byteCount: Int) -> Secret { Secret([UInt8](repeating: 0x61, count: byteCount)) }

    private static let tooLong = [ascii(4_097), marks(4_101), ascii(65_536), marks(1_000_000), ascii(4_000_000)]

    private static func signIn(_ client: IdentityClient, _ email: Text, _ password: Secret) throws {
        let _: AccountsSignInWithPasswordResponse = try client.client.call(
            "postern.v1.Accounts/SignInWithPassword",
            AccountsSignInWithPasswordRequest(email: email, password: password))
    }

    private static func hashCount(_ server: TestServer) -> UInt64 {
        server.project.passwords.computed.all.reduce(0) { $0 + $1.count }
    }

    /// Nothing tells a too long password from a wrong one: same answer, cost of one hash, one attempt of the throttle.
    @Test func tooLongAPasswordIsAWrongOne() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try #require(try client.signUp("ada@example.com").tokens)
            for (email, password) in ["ada@example.com", "nobody@example.com"].flatMap({ email in
                Self.tooLong.map { (Text(email), $0) }
            }) {
                server.clock.advance(by: .hours(1))
                let before = Self.hashCount(server)
                expectRefusal("INVALID_LOGIN_CREDENTIALS", "\(email), \(password.byteCount) bytes") {
                    try Self.signIn(client, email, password)
                }
                #expect(Self.hashCount(server) == before + 1)
            }
            let again = try client.signIn("ada@example.com")
            for password in Self.tooLong {
                server.clock.advance(by: .minutes(10))
                expectRefusal("INVALID_LOGIN_CREDENTIALS") {
                    let _: AccountsReauthenticateResponse = try client.client.call(
                        "postern.v1.Accounts/Reauthenticate",
                        AccountsReauthenticateRequest(
                            idToken: again.tokens?.idToken ?? tokens.idToken,
                            credential: .password(
                                EmailPasswordCredential(email: "ada@example.com", password: password))))
                }
            }
        }
    }

    @Test func itIsChargedAsAnAttempt() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.signUp("ada@example.com")
            var reasons: [String] = []
            for _ in 0..<12 {
                reasons.append(failure { try Self.signIn(client, "ada@example.com", Self.ascii(5_000)) }.reason)
            }
            #expect(reasons.first == "INVALID_LOGIN_CREDENTIALS" && reasons.last == "TOO_MANY_ATTEMPTS_TRY_LATER")
        }
    }

    /// A stand-in is hashed, never a part of what was sent: the right password and more is not the right one.
    @Test func theRightPasswordWithMoreBehindItIsWrong() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let longest = Self.ascii(4_096)
            let _: AccountsSignUpResponse = try client.client.call(
                "postern.v1.Accounts/SignUp", AccountsSignUpRequest(email: "ada@example.com", password: longest))
            try Self.signIn(client, "ada@example.com", longest)
            expectRefusal("INVALID_LOGIN_CREDENTIALS") { try Self.signIn(client, "ada@example.com", Self.ascii(4_097)) }
        }
    }

    /// Every way by which a new password comes in.
    @Test func aNewPasswordIsRefusedByItsLengthFirst() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try client.signUp("ada@example.com").user!.uid
            let idToken = try #require(try client.signIn("ada@example.com").tokens?.idToken)
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let code = try #require(try client.mails().first?.code)
            for password in Self.tooLong {
                let before = Self.hashCount(server)
                let client = client.client
                expectRefusal("PASSWORD_TOO_LONG") {
                    let _: AccountsSignUpResponse = try client.call(
                        "postern.v1.Accounts/SignUp",
                        AccountsSignUpRequest(email: "eve@example.com", password: password))
                }
                expectRefusal("PASSWORD_TOO_LONG") {
                    let _: AccountsUpdateResponse = try client.call(
                        "postern.v1.Accounts/Update",
                        AccountsUpdateRequest(
                            idToken: idToken, updateMask: ProtobufFieldMask(paths: ["password"]), password: password))
                }
                expectRefusal("PASSWORD_TOO_LONG") {
                    let _: AccountsResetPasswordResponse = try client.call(
                        "postern.v1.Accounts/ResetPassword",
                        AccountsResetPasswordRequest(oobCode: code, newPassword: password))
                }
                expectRefusal("PASSWORD_TOO_LONG") {
                    let _: UsersCreateResponse = try client.call(
                        "postern.v1.Users/Create", UsersCreateRequest(email: "eve@example.com", password: password))
                }
                expectRefusal("PASSWORD_TOO_LONG") {
                    let _: UsersUpdateResponse = try client.call(
                        "postern.v1.Users/Update",
                        UsersUpdateRequest(
                            uid: uid, updateMask: ProtobufFieldMask(paths: ["password"]), password: password))
                }
                #expect(Self.hashCount(server) == before)
            }
        }
    }
}
