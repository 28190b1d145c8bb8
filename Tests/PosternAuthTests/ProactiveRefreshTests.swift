import Base
import Synchronization
import TestSupport
import Testing

@testable import PosternAuth

/// Refreshing ahead of time: exactly while somebody listens to ID tokens.
@Suite(.timeLimit(.minutes(2))) struct ProactiveRefreshTests {
    /// A sleep that is cancelled keeps its memory until its time has come.
    @Test func `Refreshes, sign-outs and listeners that come and go share one sleep`() async throws {
        try await Application.run { application in
            let clock = application.clock()
            let auth = try application.auth(clock: clock)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            var handle = auth.addIDTokenDidChangeListener { _, _ in }
            try await until { clock.sleeperCount == 1 }
            for _ in 0..<50 { _ = try await user.idToken(forcingRefresh: true) }
            for _ in 0..<10 {
                handle.remove()
                handle = auth.addIDTokenDidChangeListener { _, _ in }
            }
            try await auth.signOut()
            try await auth.signIn(withEmail: "ada@example.com", password: password)
            #expect(clock.sleepCount == 1)
            handle.remove()
        }
    }

    @Test func `Tokens are kept fresh only while there is a user and somebody listens to ID tokens`() async throws {
        try await Application.run { application in
            let clock = application.clock()
            let auth = try application.auth(clock: clock)
            let states = auth.addStateDidChangeListener { _, _ in }
            try await auth.createUser(withEmail: "ada@example.com", password: password)
            #expect(!auth.isRefreshingAhead)
            let tokens = auth.addIDTokenDidChangeListener { _, _ in }
            #expect(auth.isRefreshingAhead)
            try await until { clock.sleeperCount == 1 }
            try await auth.signOut()
            // The sleep ends by itself, when it finds that nobody is signed in.
            clock.advance(by: .minutes(55))
            try await until { !auth.isRefreshingAhead && clock.sleeperCount == 0 }
            application.server.clock.advance(by: .minutes(55))
            let again = try await auth.signIn(withEmail: "ada@example.com", password: password).user
            #expect(auth.isRefreshingAhead)
            try await until { clock.sleeperCount == 1 }
            tokens.remove()
            let token = again.saved.idToken
            clock.advance(by: .minutes(55))
            try await until { !auth.isRefreshingAhead && clock.sleeperCount == 0 }
            #expect(again.saved.idToken == token)
            states.remove()
        }
    }

    @Test func `A token is refreshed up to a minute before its last five`() async throws {
        try await Application.run { application in
            let clock = application.clock()
            let auth = try application.auth(clock: clock)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let token = try await user.idToken()
            let handle = auth.addIDTokenDidChangeListener { _, _ in }
            try await until { clock.sleeperCount == 1 }
            let wait = try #require(clock.nextWakeUp)
            #expect(wait > .minutes(54) && wait <= .minutes(55))
            clock.advance(by: wait)
            application.server.clock.advance(by: wait)
            try await until { user.saved.idToken.string != token }
            // The next token has its own timer.
            try await until { clock.sleeperCount == 1 }
            #expect(try #require(clock.nextWakeUp) > .minutes(54))
            handle.remove()
        }
    }

    @Test func `While the server cannot be reached it is tried again, ever more rarely`() async throws {
        try await Application.run { application in
            let clock = application.clock()
            let proxy = CuttingProxy(target: application.server.port)
            let (auth, user) = try await application.signedIn(
                clock: clock, through: proxy, timeout: .milliseconds(100))
            proxy.stop()
            let handle = auth.addIDTokenDidChangeListener { _, _ in }
            try await until { clock.wakeUps.contains { $0 > .minutes(54) } }
            clock.advance(by: .minutes(55))
            // The user's stream is retried, too, at times that are not round.
            for seconds in [15, 30, 60, 120, 240, 300, 300] {
                try await until { clock.wakeUps.contains(.seconds(seconds)) }
                clock.advance(by: .seconds(seconds))
            }
            #expect(auth.currentUser === user)
            handle.remove()
        }
    }
}

extension Auth {
    var isRefreshingAhead: Bool { state.withLock { $0.refreshing != nil } }
}
