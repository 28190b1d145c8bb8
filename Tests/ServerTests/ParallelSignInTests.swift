import Base
import Crypto
import Identity
import Messages
import Service
import Store
import TestSupport
import Testing

/// Sign-ins of one user at the same moment, the first of which replaces the hash that all of them check.
@Suite struct ParallelSignInTests {
    /// Hashes of "correct horse" at cost 10 and 12, by the system's crypt(3).
    private static let bcrypt = Secret("$2b$10$abcdefghijklmnopqrstuu23JPZtHcGhwXSF41f93o/7vBdDut3Xu")
    private static let slowBcrypt = Secret("$2b$12$abcdefghijklmnopqrstuuFDJRuYeKkCzo3Wy7h8SxhBSHBAHiPK2")

    /// A hash of "another horse".
    private static let otherBcrypt = Secret("$2b$04$abcdefghijklmnopqrstuuoYKiLx9Ng5RIpO22PxQ9G8YrDbYXRJ6")

    private static func importing(_ client: RawClient, _ hash: Secret, replacing: Bool = false) throws {
        let answer = try ImportTests.importing(
            client, [ImportUser(uid: "u", email: "u@test.com", passwordHash: hash)],
            spec: .bcrypt(BcryptSpec()), onConflict: replacing ? .replace : .fail)
        #expect(answer.rejections.isEmpty)
    }

    private static func storedHash(_ server: TestServer) throws -> String {
        try server.project.store.read { transaction in
            try transaction.get(Tables.users, UserKey(.empty, "u"))?.passwordHash.string ?? ""
        }
    }

    /// A key that is trusted to name the end user's address.
    private static func trustedKey(_ server: TestServer) throws -> Secret {
        let made: ProjectCreateApiKeyResponse = try server.connect().call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .all(true)), trustedEndUserIP: true))
        return made.secretKey
    }

    private static func signIn(
        _ server: TestServer, as key: Secret, from address: Int, password: Text = "correct horse"
    ) throws -> AccountsSignInWithPasswordResponse {
        let client = try server.connect()
        client.apiKey = key
        return try client.call(
            "postern.v1.Accounts/SignInWithPassword",
            AccountsSignInWithPasswordRequest(
                email: "u@test.com", password: Secret(password.bytes), endUserIP: Text("192.0.2.\(address)")))
    }

    /// Each sign-in has an address of its own, since one address may not have eight attempts in progress.
    @Test func allSignInsOfAnImportedUserGetInAndNoneIsCharged() async throws {
        try await withServer { server in
            try Self.importing(server.connect(), Self.bcrypt)
            let key = try Self.trustedKey(server)
            let results = try await atOnce(8) { try Self.signIn(server, as: key, from: $0) }
            for case .failure(let error) in results { Issue.record("\(error)") }
            #expect(try Self.storedHash(server).hasPrefix("$argon2id$"))
            // Each address still has its free wrong attempts: a charge would make the last of them wait.
            for address in 0..<8 {
                for _ in 0..<5 {
                    expectRefusal("INVALID_LOGIN_CREDENTIALS") {
                        _ = try Self.signIn(server, as: key, from: address, password: "wrong horse")
                    }
                }
            }
        }
    }

    @Test func reauthenticatingWhileASignInReplacesTheHashSucceeds() async throws {
        try await withServer { server in
            let client = try server.connect()
            try Self.importing(client, Self.bcrypt)
            let custom = try IdentityClient(server).signIn(customTokenFor: "u")
            let idToken = custom.tokens?.idToken ?? .empty
            let results = try await atOnce(4) { number -> Text in
                if number > 0 {
                    return try Self.signIn(server, as: server.adminKey, from: number).user?.uid ?? .empty
                }
                let answer: AccountsReauthenticateResponse = try server.connect().call(
                    "postern.v1.Accounts/Reauthenticate",
                    AccountsReauthenticateRequest(
                        idToken: idToken,
                        credential: .password(
                            EmailPasswordCredential(email: "u@test.com", password: Secret("correct horse")))))
                return answer.user?.uid ?? .empty
            }
            #expect(results.map { try? $0.get() } == ["u", "u", "u", "u"])
        }
    }

    /// The new password comes in as a hash, so that the change needs nothing of the busy pool.
    @Test func aPasswordThatChangedWhileItWasCheckedIsRefused() async throws {
        try await withServer { server in
            try Self.importing(server.connect(), Self.slowBcrypt)
            let results = try await atOnce(2) { number in
                if number == 0 {
                    _ = try Self.signIn(server, as: server.adminKey, from: number)
                    return
                }
                // The count goes up when the check begins, which then takes a quarter of a second.
                while server.project.passwords.computed.all.allSatisfy({ $0.count == 0 }) {}
                try Self.importing(server.connect(), Self.otherBcrypt, replacing: true)
            }
            #expect((failure { try results[0].get() }).reason == "INVALID_LOGIN_CREDENTIALS")
            #expect((try? results[1].get()) != nil)
            #expect(try Self.storedHash(server).hasPrefix("$2b$04$"))
        }
    }
}
