import Base
import Synchronization
import TestSupport
import Testing

@testable import PosternAuth

/// Changes that replace the tokens, and whose answer is lost.
@Suite(.timeLimit(.minutes(2))) struct LostChangeTests {
    private static let newPassword = "another horse"

    @Test func `A lost answer to a sign-up is asked for again, and makes one account`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let auth = try application.auth(through: proxy.address)
            proxy.cutNextAnswer(to: "SignUp")
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            #expect(proxy.requestCount("SignUp") == 2)
            try await user.reload()
            proxy.stop()
        }
    }

    @Test func `A lost answer to a password change is asked for again, and nobody notices`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let auth = try application.auth(through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            proxy.cutNextAnswer(to: "Update")
            try await user.updatePassword(to: Self.newPassword)
            #expect(proxy.requestCount("Update") == 2)
            application.server.clock.advance(by: .minutes(1))
            _ = try await user.idToken(forcingRefresh: true)
            try await user.reload()
            #expect(auth.currentUser === user)
            proxy.stop()
        }
    }

    @Test func `While the server is away the answer stays open, and the next call gets it first`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let clock = application.clock()
            let auth = try application.auth(clock: clock, through: proxy.address, timeout: .seconds(3))
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            var events = auth.idTokenEvents.makeAsyncIterator()
            _ = await events.next()
            proxy.cutNextAnswer(to: "Update", goingDown: true)
            let lost = try await error { try await user.updatePassword(to: Self.newPassword) }
            #expect(lost.reason == "CONNECTION_LOST")
            #expect(lost.isRetryable)
            #expect(auth.currentUser === user)

            // This is long after the server would take a second holder of the refresh token for a second tab.
            application.server.clock.advance(by: .minutes(30))
            clock.advance(by: .minutes(30))
            proxy.comeUp()
            try await until { (try? await user.reload()) != nil }
            guard case .tokenRefreshed(.passwordChanged) = await events.next()?.change else {
                Issue.record("nobody was told of the tokens")
                return
            }
            _ = try await user.idToken(forcingRefresh: true)
            #expect(auth.currentUser === user)
            _ = try await application.auth().signIn(withEmail: "ada@example.com", password: Self.newPassword)
            proxy.stop()
        }
    }

    @Test func `A change that never reached the server is not done later`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let auth = try application.auth(through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let saved = InMemoryStorage()
            saved.save(user.saved.encoded())
            proxy.stop()
            let offline = try application.auth(
                storage: saved, through: proxy.address, timeout: .milliseconds(100))
            let held = try #require(offline.currentUser)
            let refused = try await error {
                try await held.updatePassword(to: Self.newPassword)
            }
            #expect(refused.reason == "CONNECTION_FAILED")
            let isOpen = held.state.withLock { $0.lostChange != nil }
            #expect(!isOpen)
        }
    }

    @Test func `An open answer that is refused, or too old, is given up`() async throws {
        try await Application.run { application in
            let clock = application.clock()
            let auth = try application.auth(clock: clock)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let asked = Recording<Bool>()
            func lose(since: Instant) {
                let lost = LostChange(since: since, cause: .passwordChanged) { () throws(AuthError) in
                    asked.append(true)
                    throw AuthError(Failure(.alreadyExists, "ALREADY_DONE", ""))
                }
                user.state.withLock { $0.lostChange = lost }
            }
            lose(since: clock.clock.monotonic())
            try await user.reload()
            #expect(asked.elements.count == 1)
            lose(since: clock.clock.monotonic())
            clock.advance(by: .hours(1))
            try await user.reload()
            #expect(asked.elements.count == 1)
            #expect(auth.currentUser === user)
        }
    }

    @Test func `A call that is cancelled while it asks leaves the answer open`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let lost = LostChange(since: Instant(nanoseconds: .max), cause: .passwordChanged) {
                () throws(AuthError) in throw .cancelled
            }
            user.state.withLock { $0.lostChange = lost }
            await #expect(throws: CancellationError.self) { try await user.reload() }
            let isOpen = user.state.withLock { $0.lostChange != nil }
            #expect(isOpen)
        }
    }

    @Test func `Cancelling a change neither cuts it short nor loses its answer`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let auth = try application.auth(through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            proxy.hold()
            let change = Task { try await user.updatePassword(to: Self.newPassword) }
            try await until { proxy.requestCount("Update") == 1 }
            change.cancel()
            proxy.release()
            try await change.value
            application.server.clock.advance(by: .minutes(1))
            _ = try await user.idToken(forcingRefresh: true)
            #expect(auth.currentUser === user)
            proxy.stop()
        }
    }

    /// The process ends between the answer to a change and its save, and starts again when every grace is over.
    @Test(arguments: ["password", "link", "unlink", "reauthenticate"])
    func `A process that was killed during a change goes on with the session after a restart`(
        change: String
    ) async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(
                target: application.server.port, methods: ["Update", "SignInWithIdp", "Unlink", "Reauthenticate"])
            let storage = InMemoryStorage()
            let auth = try application.auth(storage: storage, through: proxy.address, timeout: .seconds(3))
            let user = try await auth.createUser(withEmail: "ada@gmail.com", password: password).user
            if change == "unlink" { try await user.link(with: application.credential(.google())) }
            let method =
                ["password": "Update", "link": "SignInWithIdp", "unlink": "Unlink"][change] ?? "Reauthenticate"
            proxy.cutNextAnswer(to: method, goingDown: true)
            let lost = try await error {
                switch change {
                case "password": try await user.updatePassword(to: Self.newPassword)
                case "link": try await user.link(with: application.credential(.google()))
                case "unlink": try await user.unlink(fromProvider: "google.com")
                default:
                    try await user.reauthenticate(
                        with: EmailAuthProvider.credential(withEmail: "ada@gmail.com", password: password))
                }
            }
            #expect(lost.isRetryable)
            let killed = InMemoryStorage()
            killed.save(try #require(storage.load()))
            proxy.stop()

            application.server.clock.advance(by: .seconds(13))
            let clock = application.clock()
            let again = try application.auth(storage: killed, clock: clock)
            let same = try #require(again.currentUser)
            // Any call may come first.
            try await same.reload()
            application.server.clock.advance(by: .seconds(13))
            _ = try await same.idToken(forcingRefresh: true)
            #expect(again.currentUser === same)
            if change == "password" {
                _ = try await application.auth().signIn(withEmail: "ada@gmail.com", password: Self.newPassword)
            }
        }
    }
}
