import Base
import Identity
import JSON
import Messages
import PosternClient
import Service
import Store
import Synchronization
import TestSupport
import Testing
import Tokens

@testable import PosternAuth

/// Refreshing: once for all callers, and never lost.
@Suite(.timeLimit(.minutes(2))) struct RefreshTests {
    @Test func `Fifty callers share one refresh`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let auth = try application.auth(through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let old = try await user.idToken()
            // Another call has the turn, so that no refresh is sent before all callers wait.
            await user.turns.take()
            let tokens = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<50 { group.addTask { try await user.idToken(forcingRefresh: true) } }
                try await until { user.refreshWaiterCount == 50 }
                user.turns.giveBack()
                return try await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            #expect(tokens.count == 1)
            #expect(!tokens.contains(old))
            #expect(proxy.requestCount("Refresh") == 1)
            proxy.stop()
        }
    }

    @Test func `A caller who gives up leaves the others their refresh`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let auth = try application.auth(through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            await user.turns.take()
            let impatient = Task { try await user.idToken(forcingRefresh: true) }
            try await until { user.refreshWaiterCount == 1 }
            let patient = Task { try await user.idToken(forcingRefresh: true) }
            try await until { user.refreshWaiterCount == 2 }
            impatient.cancel()
            #expect(await impatient.result.failure is CancellationError)
            user.turns.giveBack()
            _ = try await patient.value
            #expect(proxy.requestCount("Refresh") == 1)
            proxy.stop()
        }
    }

    @Test func `A forced refresh brings the claims of its moment, though another refresh is under way`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let auth = try application.auth(through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            proxy.holdNextAnswer(to: "Refresh")
            let early = Task { try await user.idTokenResult(forcingRefresh: true) }
            try await until { (try? application.rotationCount(of: user)) == 1 }
            _ = try await UsersClient(channel: application.admin).setCustomClaims(
                UsersSetCustomClaimsRequest(
                    uid: Text(user.uid), customClaimsJSON: [UInt8](#"{"role":"editor"}"#.utf8)))
            let late: [Task<AuthTokenResult, any Error>] = (0..<3).map { _ in
                Task { try await user.idTokenResult(forcingRefresh: true) }
            }
            try await until { user.refreshWaiterCount == 4 }
            proxy.release()
            _ = try await early.value
            for task in late {
                let result = try await task.value
                #expect(result[claim: "role"]?.string == "editor")
            }
            // The three share the second refresh.
            #expect(proxy.requestCount("Refresh") == 2)
            proxy.stop()
        }
    }

    @Test func `A lost answer is asked for again with the same attempt`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let auth = try application.auth(through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            proxy.cutNextAnswer(to: "Refresh")
            _ = try await user.idToken(forcingRefresh: true)
            #expect(proxy.requestCount("Refresh") == 2)
            // The session goes on from there.
            _ = try await user.idToken(forcingRefresh: true)
            #expect(auth.currentUser === user)
            proxy.stop()
        }
    }

    @Test func `An answer lost for good is asked for hours later, after a restart, with the stored attempt`()
        async throws
    {
        try await Application.run { application in
            let storage = InMemoryStorage()
            let proxy = CuttingProxy(target: application.server.port)
            let (auth, user) = try await application.signedIn(storage: storage, through: proxy, timeout: .seconds(3))
            let held = try #require(user.refreshToken)
            // The server commits, then the network fails.
            proxy.hold()
            let lost = Task { try await user.idToken(forcingRefresh: true) }
            try await until { proxy.requestCount("Refresh") == 1 }
            try await until { (try? application.rotationCount(of: user)) == 1 }
            // This is what the storage holds if the process is killed here.
            let record = try #require(storage.load())
            let saved = try #require(try SavedState(record, tenantID: .empty))
            #expect(saved.attempt?.refreshToken == Text(held))
            #expect(saved.refreshToken == Text(held))
            proxy.stop()
            _ = await lost.result
            #expect(auth.currentUser === user)

            application.server.clock.advance(by: .hours(5))
            let left = InMemoryStorage()
            left.save(record)
            let next = try application.auth(storage: left)
            let back = try #require(next.currentUser)
            _ = try await back.idToken()
            #expect(back.refreshToken != held)
            try await back.reload()
            _ = try await back.idToken(forcingRefresh: true)
            #expect(next.currentUser === back)
        }
    }

    @Test func `Offline, the attempt is kept and repeated until there is an answer`() async throws {
        try await Application.run { application in
            let clock = application.clock()
            let auth = try application.auth(clock: clock)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            // Another way to the same server: a proxy, which is down.
            let saved = user.saved
            let proxy = CuttingProxy(target: application.server.port)
            let storage = InMemoryStorage()
            storage.save(saved.encoded())
            let offline = try application.auth(
                storage: storage, clock: clock, through: proxy.address, timeout: .milliseconds(500))
            proxy.stop()
            let held = try #require(offline.currentUser)
            var attempts: [RefreshAttempt?] = []
            for _ in 0..<2 {
                let failure = try await error {
                    _ = try await held.idToken(forcingRefresh: true)
                }
                #expect(failure.isRetryable)
                attempts.append(held.saved.attempt)
            }
            #expect(attempts[0] != nil && attempts[0] == attempts[1])
            #expect(try SavedState(#require(storage.load()), tenantID: .empty)?.attempt == attempts[0])
            #expect(offline.currentUser === held)
        }
    }

    @Test func `A refresh token that somebody else used ends the session, and says so`() async throws {
        try await Application.run { application in
            let storage = InMemoryStorage()
            let auth = try application.auth(storage: storage)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let copied = InMemoryStorage()
            copied.save(try #require(storage.load()))
            let thief = try application.auth(storage: copied)
            _ = try await #require(thief.currentUser).idToken(forcingRefresh: true)
            application.server.clock.advance(by: .seconds(11))
            let refusal = try await error { _ = try await user.idToken(forcingRefresh: true) }
            #expect(refusal.code == .userTokenExpired)
            #expect(refusal.cause == .revokedByReuse)
            #expect(auth.currentUser == nil)
            try await until { storage.load() == nil }
        }
    }

    @Test func `Calls of one user go one after the other, so that none presents a token the other replaces`()
        async throws
    {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<24 {
                    group.addTask {
                        switch number % 4 {
                        case 0: _ = try await user.idToken(forcingRefresh: true)
                        case 1: try await user.updatePassword(to: password)
                        case 2:
                            try await user.reauthenticate(
                                with: EmailAuthProvider.credential(withEmail: "ada@example.com", password: password))
                        default: try await user.reload()
                        }
                    }
                }
                try await group.waitForAll()
            }
            application.server.clock.advance(by: .minutes(1))
            _ = try await user.idToken(forcingRefresh: true)
            #expect(auth.currentUser === user)
        }
    }
}

extension Application {
    /// The number of refresh tokens that the session was given after the one that the user holds.
    func rotationCount(of user: PosternAuth.User) throws -> UInt64 {
        let token = try #require(server.project.refreshTokens.decode(user.saved.refreshToken))
        let session = try server.project.store.read { try $0.get(Tables.sessions, SessionKey(token.sessionID)) }
        return try #require(session).counter - token.counter
    }
}

extension PosternAuth.User {
    /// The number of callers that wait for the refresh under way.
    var refreshWaiterCount: Int { state.withLock { $0.refreshWaiters.count } }
}

extension Result {
    var failure: Failure? { if case .failure(let error) = self { error } else { nil } }
}
