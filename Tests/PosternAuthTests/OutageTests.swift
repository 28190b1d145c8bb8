import Base
import Messages
import Synchronization
import TestSupport
import Testing

@testable import PosternAuth
@testable import PosternClient

/// The server is away for a while: the calls of an application's user wait, and are then answered at once.
@Suite(.timeLimit(.minutes(2))) struct OutageTests {
    @Test func `A call that is made while the server is away is answered when it is back`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let auth = try application.auth(through: proxy.address, timeout: .seconds(60))
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            proxy.sever(goingDown: true)
            let refused = proxy.refusedCount
            let waiting = Task { try await user.reload() }
            // The channel tries at once, and goes on trying.
            try await until { proxy.refusedCount >= refused + 2 }
            proxy.comeUp()
            try await waiting.value
            #expect(auth.currentUser === user)
            proxy.stop()
        }
    }

    @Test func `A silent application hears what happened during an outage, without a call`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let clock = application.clock()
            let auth = try application.auth(clock: clock, through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let told = Recording<String?>()
            let handle = auth.addStateDidChangeListener { _, user in told.append(user?.uid) }
            try await until { application.streamCount == 1 }
            proxy.sever(goingDown: true)
            try await until { application.streamCount == 0 }
            _ = try await UsersClient(channel: application.admin).revokeTokens(
                UsersRevokeTokensRequest(uid: Text(user.uid)))
            try await until { clock.sleeperCount == 1 }
            clock.advance(by: .seconds(1))
            let refused = proxy.refusedCount
            try await until { proxy.refusedCount >= refused + 3 }
            proxy.comeUp()
            try await until { told.elements == [user.uid, nil] }
            handle.remove()
            proxy.stop()
        }
    }

    @Test func `A call that waited in vain says that it was not sent`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let (auth, user) = try await application.signedIn(through: proxy, timeout: .milliseconds(300))
            proxy.stop()
            // When this has failed, the application knows that its connection is gone, and sends nothing over it.
            _ = try await error { try await user.reload() }
            let offline = try await error { try await user.updatePassword(to: "another horse") }
            #expect(offline.code == .networkError)
            #expect(offline.reason == Reason.connectionFailed.name)
            #expect(offline.isRetryable)
            let isOpen = user.state.withLock { $0.lostChange != nil }
            #expect(!isOpen)
            #expect(auth.currentUser === user)
        }
    }

    @Test func `A dead connection is found while a call has time for another one`() {
        for seconds in [5, 10, 60] {
            let options = Auth.channelOptions(timeout: .seconds(seconds))
            #expect(options.callPatience * 2 < options.timeout)
            #expect(options.keepalive == .minutes(1))
        }
    }

    @Test func `An application leaves a server alone for a few seconds at most`() {
        var backoff = Auth.channelOptions(timeout: .seconds(10)).reconnect
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<1_000 { #expect(backoff.failed(using: &generator) < .seconds(4)) }
    }
}
