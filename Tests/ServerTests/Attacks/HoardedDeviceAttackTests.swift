import Base
import Glibc
import Messages
import TestSupport
import Testing

@testable import Identity

/// A thief who knows a user's password signs in while a new one is being set, to have a known device afterwards.
@Suite struct HoardedDeviceAttackTests {
    private static let email: Text = "ada@example.com"

    /// Makes a change while a sign-in of the thief is on its way: both are asked for, a second later the sign-in is
    /// made, and then the change. Returns the thief's device token.
    private static func hoard(
        _ server: TestServer, _ uid: Text, during change: @escaping @Sendable (IdentityClient) throws -> Void
    ) async throws -> Text {
        server.clock.advance(by: .seconds(1))
        let user = server.project.users.session(tenantID: .empty, uid: uid)
        await user.takeTurn()
        let signIn = Task {
            try await atOnce(1) { _ in try Guesser(server, isTrusted: false).signIn(Self.email).deviceToken }
        }
        try await until("the sign-in waits for its turn") { await user.waitingCount >= 1 }
        let changing = Task {
            try await atOnce(1) { _ in try change(try IdentityClient(server)) }
        }
        try await until("the change waits for its turn") { await user.waitingCount >= 2 }
        server.clock.advance(by: .seconds(1))
        await user.passTurn()
        for done in try await changing.value { try done.get() }
        let tokens = try await signIn.value
        return try tokens[0].get()
    }

    /// The token admits no guess once strangers have none left.
    private static func expectWorthless(_ token: Text, _ server: TestServer) throws {
        let stranger = try Guesser(server, isTrusted: false)
        while stranger.tryPassword("x", of: Self.email).reason != tooManyAttempts {}
        #expect(stranger.tryPassword("x", of: Self.email, deviceToken: token).reason == tooManyAttempts)
    }

    @Test func `A sign-in that is made before the user's own change gives no known device after it`() async throws {
        try await withServer { server in
            let made = try IdentityClient(server).signUp(Self.email)
            let idToken = try #require(made.tokens).idToken
            let token = try await Self.hoard(server, try #require(made.user).uid) { client in
                let _: AccountsUpdateResponse = try client.client.call(
                    "postern.v1.Accounts/Update",
                    AccountsUpdateRequest(
                        idToken: idToken, updateMask: ProtobufFieldMask(paths: ["password"]),
                        password: Secret("another horse")))
            }
            try Self.expectWorthless(token, server)
        }
    }

    @Test func `The same before a reset`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let uid = try #require(try client.signUp(Self.email).user).uid
            try client.sendOob(.passwordReset, email: Self.email)
            let code = try #require(try client.mails().first).code
            let token = try await Self.hoard(server, uid) { _ = try $0.resetPassword(code, "another horse") }
            try Self.expectWorthless(token, server)
        }
    }

    @Test func `The same before an admin's new password`() async throws {
        try await withServer { server in
            let uid = try #require(try IdentityClient(server).signUp(Self.email).user).uid
            let token = try await Self.hoard(server, uid) { client in
                try client.update(uid, ["password"]) { $0.password = Secret("from the help desk") }
            }
            try Self.expectWorthless(token, server)
        }
    }

    @Test func `The same before an import that replaces the password`() async throws {
        try await withServer { server in
            let uid = try #require(try IdentityClient(server).signUp(Self.email).user).uid
            let token = try await Self.hoard(server, uid) { client in
                var row = ImportUser(uid: uid, email: Self.email)
                row.passwordHash = Secret("$2a$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a")
                row.passwordUpdatedAtMicros = 1
                let done = try ImportTests.importing(
                    client.client, [row], spec: .bcrypt(BcryptSpec()), onConflict: .replace)
                guard done.replacedCount == 1 else { throw Failure(.notFound, "NOT_REPLACED", "") }
            }
            try Self.expectWorthless(token, server)
        }
    }
}
