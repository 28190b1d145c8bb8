import Base
import Messages
import Service
import Synchronization
import TestSupport
import Testing
import Wire

/// Fifty callers at once: uniqueness and rotation hold.
@Suite struct ConcurrencyTests {
    /// Calls `body` on fifty connections at once, each on a thread of its own.
    private func fiftyTimes<Result: Sendable>(
        _ server: TestServer, _ body: @escaping @Sendable (RawClient) throws -> Result
    ) async throws -> [Swift.Result<Result, any Error>] {
        let port = server.port
        let key = server.adminKey
        let results = Mutex<[Swift.Result<Result, any Error>]>([])
        let done = Promise<Void>()
        let runner = OSThread(name: "fifty") {
            let threads = (0..<50).map { _ in
                OSThread(name: "caller") {
                    let result = Swift.Result {
                        let client = try RawClient(port: port)
                        client.apiKey = key
                        return try body(client)
                    }
                    results.withLock { $0.append(result) }
                }
            }
            for thread in threads { thread.join() }
            done.succeed(())
        }
        try await done.value()
        runner.join()
        return results.withLock { $0 }
    }

    @Test func fiftySignUpsOfOneEmailMakeOneAccount() async throws {
        try await withServer(configure: { $0.limits.passwordQueuePerTenantMax = 64 }) { server in
            let results = try await fiftyTimes(server) { client in
                try client.call(
                    "postern.v1.Accounts/SignUp",
                    AccountsSignUpRequest(email: "Ann@Example.com", password: Secret("secret1")),
                    returning: AccountsSignUpResponse.self)
            }
            let made = results.compactMap { try? $0.get() }
            #expect(made.count == 1)
            for case .failure(let error) in results {
                let reason = (error as? Failure)?.reason
                #expect(reason == "EMAIL_EXISTS" || reason == "TOO_MANY_ATTEMPTS_TRY_LATER", "\(error)")
            }
            let client = try server.connect()
            let users = try client.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)
            #expect(users.users.map(\.uid) == made.map { $0.user?.uid ?? .empty })
        }
    }

    @Test func fiftyRefreshesOfOneTokenHaveOneSuccessor() async throws {
        try await withServer { server in
            let client = try server.connect()
            let made = try client.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(email: "ann@example.com", password: Secret("secret1")),
                returning: AccountsSignUpResponse.self)
            let token = made.tokens?.refreshToken ?? .empty
            let results = try await fiftyTimes(server) { client in
                try client.call(
                    "postern.v1.Tokens/Refresh", TokensRefreshRequest(refreshToken: token),
                    returning: TokensRefreshResponse.self)
            }
            let answers = results.compactMap { try? $0.get() }
            #expect(answers.count == 50)
            #expect(Set(answers.map { $0.tokens?.refreshToken ?? .empty }).count == 1)
            #expect(answers.filter { $0.outcome == .rotated }.count == 1)
            #expect(answers.filter { $0.outcome == .repeatedWithinGrace }.count == 49)
        }
    }

    @Test func fiftyRepeatsOfOnePasswordChangeMakeOne() async throws {
        try await withServer(configure: { $0.limits.passwordQueuePerTenantMax = 64 }) { server in
            let client = try IdentityClient(server)
            let idToken = try client.signUp("ann@example.com").tokens!.idToken
            let results = try await fiftyTimes(server) { client in
                try client.call(
                    "postern.v1.Accounts/Update",
                    AccountsUpdateRequest(
                        idToken: idToken, updateMask: ProtobufFieldMask(paths: ["password"]),
                        password: Secret("another horse")),
                    returning: AccountsUpdateResponse.self,
                    metadata: [OutgoingMetadata.Entry(key: "idempotency-key", value: "k1")])
            }
            // A call that looks for the first answer just too early, and at the token just after, finds a dead token.
            for case .failure(let error) in results { #expect((error as? Failure)?.reason == "TOKEN_EXPIRED") }
            let answers = results.compactMap { try? $0.get().tokens?.refreshToken }
            #expect(!answers.isEmpty && Set(answers).count == 1)
            _ = try client.refresh(answers[0])
        }
    }
}
