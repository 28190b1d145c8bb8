import Base
import Synchronization
import TestSupport
import Testing

@testable import PosternAuth

/// Refreshing ahead of time: exactly while somebody listens to ID tokens.
@Suite(.timeLimit(.minutes(2))) struct ProactiveRefreshTests {
    @Test func `There is a timer only while there is a user and somebody listens to ID tokens`() async throws {
        try await Application.run { application in
            let clock = application.clock()
            let auth = try application.auth(clock: clock)
            let states = auth.addStateDidChangeListener { _, _ in }
            try await auth.createUser(withEmail: "ada@example.com", password: password)
            #expect(!auth.isRefreshingAhead)
            let tokens = auth.addIDTokenDidChangeListener { _, _ in }
            #expect(auth.isRefreshingAhead)
            try await eventually { clock.sleeperCount == 1 }
            try await auth.signOut()
            #expect(!auth.isRefreshingAhead)
            try await eventually { clock.sleeperCount == 0 }
            try await auth.signIn(withEmail: "ada@example.com", password: password)
            #expect(auth.isRefreshingAhead)
            tokens.remove()
            #expect(!auth.isRefreshingAhead)
            try await eventually { clock.sleeperCount == 0 }
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
            try await eventually { clock.sleeperCount == 1 }
            let wait = try #require(clock.nextWakeUp)
            #expect(wait > .minutes(54) && wait <= .minutes(55))
            clock.advance(by: wait)
            application.server.clock.advance(by: wait)
            try await eventually { user.saved.idToken.string != token }
            // The next one has its own timer.
            try await eventually { clock.sleeperCount == 1 }
            #expect(try #require(clock.nextWakeUp) > .minutes(54))
            handle.remove()
        }
    }

    @Test func `While the server cannot be reached it is tried again, ever more rarely`() async throws {
        try await Application.run { application in
            let clock = application.clock()
            let proxy = CuttingProxy(target: application.server.port)
            let auth = try application.auth(clock: clock, through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            proxy.stop()
            let handle = auth.addIDTokenDidChangeListener { _, _ in }
            try await eventually { clock.wakeUps.contains { $0 > .minutes(54) } }
            clock.advance(by: .minutes(55))
            // The user's stream is tried again, too, at times that are not round.
            for seconds in [15, 30, 60, 120, 240, 300, 300] {
                try await eventually { clock.wakeUps.contains(.seconds(seconds)) }
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
