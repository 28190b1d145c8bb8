import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// A process ends between the answer to a sign-up and its save: the next process goes on with the session.
@Suite(.timeLimit(.minutes(2))) struct BegunSignUpTests {
    /// What the storage held when the answer was lost, as a killed process leaves it.
    private func leftBehind(
        by application: Application, _ signUp: @escaping @Sendable (Auth) async throws -> Void
    ) async throws -> InMemoryStorage {
        let proxy = CuttingProxy(target: application.server.port, methods: ["SignUp"])
        let storage = InMemoryStorage()
        let auth = try application.auth(storage: storage, through: proxy.address)
        proxy.cutNextAnswer(to: "SignUp", goingDown: true)
        let signingUp = Task { try await signUp(auth) }
        // The proxy refuses connections from the lost answer on.
        try await until("the answer is lost") { proxy.refusedCount > 0 }
        let left = InMemoryStorage()
        left.save(try #require(storage.load()))
        signingUp.cancel()
        proxy.stop()
        _ = await signingUp.result
        return left
    }

    @Test(arguments: [true, false])
    func `A sign-up whose answer was lost is gone on with by the next process`(isAnonymous: Bool) async throws {
        try await Application.run { application in
            let storage = try await leftBehind(by: application) { auth in
                if isAnonymous {
                    try await auth.signInAnonymously()
                } else {
                    try await auth.createUser(withEmail: "ada@example.com", password: password)
                }
            }
            application.server.clock.advance(by: .minutes(5))
            let auth = try application.auth(storage: storage, clock: application.clock())
            try await until { auth.currentUser != nil }
            let user = try #require(auth.currentUser)
            #expect(user.isAnonymous == isAnonymous)
            #expect(try await user.sessions().count == 1)
            _ = try await user.idToken(forcingRefresh: true)
            #expect(try application.auth(storage: storage).currentUser?.uid == user.uid)
        }
    }

    @Test func `A sign-up that was not done is forgotten, and so is one that is too old`() async throws {
        try await Application.run { application in
            let never = InMemoryStorage()
            never.save(SavedState.encoded(signUpAttempt: [UInt8](repeating: 7, count: 16), tenantID: .empty))
            let auth = try application.auth(storage: never)
            try await until { never.load() == nil }
            #expect(auth.currentUser == nil)
            #expect(auth.storageError == nil)

            let old = try await leftBehind(by: application) { try await $0.signInAnonymously() }
            application.server.clock.advance(by: .hours(2))
            let later = try application.auth(storage: old)
            try await until { old.load() == nil }
            #expect(later.currentUser == nil)
        }
    }

    @Test func `A sign-up that is refused leaves the storage as it was`() async throws {
        try await Application.run { application in
            let storage = InMemoryStorage()
            let auth = try application.auth(storage: storage)
            _ = try await error { try await auth.createUser(withEmail: "ada@example.com", password: "1") }
            #expect(storage.load() == nil)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let record = storage.load()
            _ = try await error { try await auth.createUser(withEmail: "ada@example.com", password: password) }
            #expect(storage.load() == record)
            #expect(auth.currentUser === user)
        }
    }

    @Test func `A sign-up that is refused leaves a record alone that cannot be used here`() async throws {
        try await Application.run { application in
            for record in [#"{"version":1,"tenant_id":"#, #"{"version":2}"#] {
                let storage = InMemoryStorage()
                storage.save(Array(record.utf8))
                let auth = try application.auth(storage: storage)
                _ = try await error { try await auth.createUser(withEmail: "ada@example.com", password: "1") }
                #expect(storage.load() == Array(record.utf8))
            }
        }
    }

    @Test func `The tokens of a sign-up are had by its attempt once, by its caller, in its tenant`() async throws {
        try await Application.run { application in
            let tokens = TokensClient(channel: application.admin)
            let attempt = [UInt8](repeating: 9, count: 16)
            let request = AccountsSignUpRequest(email: "ada@example.com", password: Secret(password))
            let signedUp = try await AccountsClient(channel: application.admin)
                .signUp(request, options: CallOptions(idempotencyKey: Hex.encode(attempt)))
            let again = try await tokens.refresh(TokensRefreshRequest(attemptID: attempt))
            #expect(again.uid == signedUp.user?.uid)
            let pair = try #require(again.tokens)

            for other in [[UInt8](repeating: 8, count: 16), [UInt8](repeating: 0, count: 16)] {
                await #expect(throws: Failure.self) {
                    try await tokens.refresh(TokensRefreshRequest(attemptID: other))
                }
            }
            _ = try await TenantsClient(channel: application.admin).create(TenantsCreateRequest(tenantID: "acme"))
            await #expect(throws: Failure.self) {
                try await tokens.refresh(TokensRefreshRequest(tenantID: "acme", attemptID: attempt))
            }
            // The session went on: a caller that has only the attempt comes too late.
            _ = try await tokens.refresh(TokensRefreshRequest(refreshToken: pair.refreshToken))
            let late = await #expect(throws: Failure.self) {
                try await tokens.refresh(TokensRefreshRequest(attemptID: attempt))
            }
            #expect(late?.reason == "ALREADY_DONE")
        }
    }
}
