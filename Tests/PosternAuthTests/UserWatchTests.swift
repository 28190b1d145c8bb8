import Base
import Messages
import PosternClient
import Synchronization
import TestSupport
import Testing

@testable import PosternAuth

/// The stream behind live changes: when there is one, and what becomes of it.
@Suite(.timeLimit(.minutes(2))) struct UserWatchTests {
    private static let email = "ada@example.com"

    /// Renames the user by an administrator's call, behind the back of the applications here.
    private func rename(_ user: PosternAuth.User, _ name: Text, _ application: Application) async throws {
        var request = UsersUpdateRequest(uid: Text(user.uid), updateMask: ProtobufFieldMask(paths: ["display_name"]))
        request.displayName = name
        _ = try await UsersClient(channel: application.admin).update(request)
    }

    @Test func `There is one stream while there is a user and somebody listens, however many`() async throws {
        try await Application.run { application in
            let clock = application.clock()
            let auth = try application.auth(clock: clock)
            let first = auth.addStateDidChangeListener { _, _ in }
            #expect(!auth.isWatching)
            try await auth.createUser(withEmail: Self.email, password: password)
            #expect(auth.isWatching)
            try await until { application.streamCount == 1 }
            let second = auth.addStateDidChangeListener { _, _ in }
            _ = try await auth.currentUser?.idToken(forcingRefresh: true)
            first.remove()
            #expect(auth.isWatching && application.streamCount == 1)
            second.remove()
            #expect(!auth.isWatching)
            try await until { application.streamCount == 0 }

            var events: IDTokenEventsSequence.Iterator? = auth.idTokenEvents.makeAsyncIterator()
            #expect(await events?.next()?.user != nil)
            try await until { application.streamCount == 1 }
            try await auth.signOut()
            #expect(!auth.isWatching)
            try await until { application.streamCount == 0 }
            try await auth.signIn(withEmail: Self.email, password: password)
            try await until { application.streamCount == 1 }
            events = nil
            #expect(!auth.isWatching)
            try await until { application.streamCount == 0 }
        }
    }

    @Test func `A stream that is cut is opened again, and tells what was missed`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let clock = application.clock()
            let auth = try application.auth(clock: clock, through: proxy.address)
            let user = try await auth.createUser(withEmail: Self.email, password: password).user
            let handle = auth.addStateDidChangeListener { _, _ in }
            try await until { application.streamCount == 1 && clock.sleeperCount == 0 }
            for name in ["Ada", "Countess"] {
                // Once this message has come, the stream exists and can be lost.
                try await rename(user, Text("\(name) \(name)"), application)
                try await until { user.displayName == "\(name) \(name)" }
                proxy.sever(goingDown: true)
                try await until { clock.sleeperCount == 1 }
                let wait = try #require(clock.nextWakeUp)
                #expect(wait >= .milliseconds(500) && wait <= .seconds(1))
                try await rename(user, Text(name), application)
                proxy.comeUp()
                try await until {
                    if let wait = clock.nextWakeUp { clock.advance(by: wait) }
                    return user.displayName == name
                }
            }
            #expect(auth.currentUser === user)
            handle.remove()
            proxy.stop()
        }
    }

    @Test func `An answer that is lost as the stream opens is asked for again`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let clock = application.clock()
            let auth = try application.auth(clock: clock, through: proxy.address)
            let user = try await auth.createUser(withEmail: Self.email, password: password).user
            proxy.cutNextAnswer(to: "WatchAuthState")
            let handle = auth.addStateDidChangeListener { _, _ in }
            try await until { clock.sleeperCount == 1 }
            try await rename(user, "Ada", application)
            clock.advance(by: .seconds(1))
            try await until { user.displayName == "Ada" }
            #expect(proxy.requestCount("WatchAuthState") == 2)
            handle.remove()
            proxy.stop()
        }
    }

    @Test func `While the server cannot be reached the stream waits for a connection, and nobody is signed out`()
        async throws
    {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let clock = application.clock()
            let auth = try application.auth(clock: clock, through: proxy.address)
            let user = try await auth.createUser(withEmail: Self.email, password: password).user
            proxy.sever(goingDown: true)
            let handle = auth.addStateDidChangeListener { _, _ in }
            let refused = proxy.refusedCount
            try await until {
                // The stream may have been asked for on the connection that was just lost; only that is slept for.
                if let wait = clock.nextWakeUp { clock.advance(by: wait) }
                return proxy.refusedCount >= refused + 3
            }
            #expect(clock.sleeperCount == 0)
            #expect(auth.currentUser === user)
            proxy.comeUp()
            try await until { application.streamCount == 1 }
            handle.remove()
            proxy.stop()
        }
    }

    @Test func `A stream that the server ends with an error is asked for ever more rarely`() {
        var backoff = WatchBackoff()
        for bound in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] as [Int64] {
            #expect(backoff.delay(after: nil, jitter: 0) == .milliseconds(bound * 500))
        }
        backoff.messageCame()
        #expect(backoff.delay(after: nil, jitter: 0) == .milliseconds(500))
        #expect(backoff.delay(after: .noCurrentUser, jitter: 0) == nil)
    }

    @Test func `A stream of a tenant that is switched off is not asked for again before the next tokens`()
        async throws
    {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let clock = application.clock()
            let auth = try application.auth(clock: clock, through: proxy.address)
            let user = try await auth.createUser(withEmail: Self.email, password: password).user
            let handle = auth.addStateDidChangeListener { _, _ in }
            try await until { application.streamCount == 1 }
            try await application.setTenant(["disable_auth"]) { $0.disableAuth = true }
            try await until { auth.isRefused }
            #expect(clock.sleeperCount == 0)
            #expect(auth.currentUser === user)
            try await application.setTenant(["disable_auth"]) { $0.disableAuth = false }
            try await rename(user, "Ada", application)
            #expect(proxy.requestCount("WatchAuthState") == 1 && user.displayName == nil)
            _ = try await user.idToken(forcingRefresh: true)
            try await until { user.displayName == "Ada" }
            #expect(proxy.requestCount("WatchAuthState") == 2)
            handle.remove()
            proxy.stop()
        }
    }

    @Test func `A key that is revoked ends the stream, and signs nobody out`() async throws {
        try await Application.run { application in
            let project = ProjectClient(channel: application.admin)
            let made = try await project.createApiKey(
                ProjectCreateApiKeyRequest(role: .app, scope: Scope(tenants: .all(true))))
            var configuration = Auth.Configuration(
                address: "127.0.0.1:\(application.server.port)", credentials: .apiKey(made.secretKey))
            let clock = application.clock()
            configuration.clock = clock.clock
            let auth = try Auth(configuration: configuration)
            let user = try await auth.createUser(withEmail: Self.email, password: password).user
            let handle = auth.addStateDidChangeListener { _, _ in }
            try await until { application.streamCount == 1 }
            _ = try await project.revokeApiKey(
                ProjectRevokeApiKeyRequest(apiKeyID: try #require(made.apiKey).apiKeyID))
            try await until { auth.isRefused && application.streamCount == 0 }
            #expect(clock.sleeperCount == 0)
            #expect(auth.currentUser === user)
            handle.remove()
        }
    }

    @Test func `An older server that has no such stream is asked once`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            proxy.hide("WatchAuthState")
            let clock = application.clock()
            let auth = try application.auth(clock: clock, through: proxy.address)
            let user = try await auth.createUser(withEmail: Self.email, password: password).user
            let handle = auth.addStateDidChangeListener { _, _ in }
            try await until { auth.isRefused }
            #expect(clock.sleeperCount == 0 && proxy.requestCount("WatchAuthState") == 1)
            #expect(auth.currentUser === user)
            try await user.reload()
            handle.remove()
            proxy.stop()
        }
    }

    @Test func `A token that only looked good is replaced, and the stream opened with the next`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let auth = try application.auth(through: proxy.address)
            let user = try await auth.createUser(withEmail: Self.email, password: password).user
            let token = try await user.idToken()
            // The application's clocks do not move.
            application.server.clock.advance(by: .hours(2))
            try await rename(user, "Ada", application)
            let handle = auth.addStateDidChangeListener { _, _ in }
            try await until { user.displayName == "Ada" }
            #expect(try await user.idToken() != token)
            #expect(proxy.requestCount("Refresh") == 1)
            #expect(proxy.requestCount("WatchAuthState") == 2)
            handle.remove()
            proxy.stop()
        }
    }

    @Test func `A session that ended while nobody listened ends when somebody does, with its cause`() async throws {
        try await Application.run { application in
            let (laptop, phone) = (try application.auth(), try application.auth())
            let onLaptop = try await laptop.createUser(withEmail: Self.email, password: password).user
            try await phone.signIn(withEmail: Self.email, password: password)
            try await onLaptop.updatePassword(to: "another horse")
            #expect(phone.currentUser != nil)
            var events = phone.idTokenEvents.makeAsyncIterator()
            var event = await events.next()
            if case .initialized = event?.change { event = await events.next() }
            guard case .signedOut(let error?) = event?.change else {
                Issue.record("the phone was not told")
                return
            }
            #expect(error.cause == .passwordChanged)
        }
    }

    @Test func `Neither Auth nor user is kept by the stream, open or waiting`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let clock = application.clock()
            for isDown in [false, true] {
                var auth: Auth? = try application.auth(clock: clock, through: proxy.address)
                try await auth?.createUser(withEmail: "\(isDown)@example.com", password: password)
                weak let dropped = auth
                weak let user = auth?.currentUser
                auth?.addStateDidChangeListener { _, _ in }
                auth?.addIDTokenDidChangeListener { _, _ in }
                try await until { application.streamCount == 1 }
                if isDown {
                    proxy.sever(goingDown: true)
                    try await until { clock.sleeperCount == 2 }
                }
                auth = nil
                try await until { dropped == nil && user == nil }
                try await until { application.streamCount == 0 && clock.sleeperCount == 0 }
            }
            proxy.stop()
        }
    }

    @Test func `Delays double from a second to five minutes, and begin again once the stream told something`() {
        var backoff = WatchBackoff()
        let lost = AuthError(Failure(.unavailable, Reason.connectionLost.name, ""))
        let delays = (0..<11).map { _ in backoff.delay(after: lost, jitter: 0) }
        #expect(
            delays
                == [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 150_000, 150_000].map {
                    .milliseconds($0)
                })
        backoff.messageCame()
        // A stream that ends without an error has a delay, too.
        #expect(backoff.delay(after: nil, jitter: 0.5) == .milliseconds(750))
        var later = lost
        later.retryAfter = .minutes(7)
        #expect(backoff.delay(after: later, jitter: 0) == .minutes(7))
    }

    @Test(arguments: [
        Failure(.unimplemented, "UNIMPLEMENTED", ""), Failure(.unauthenticated, "CALLER_UNAUTHENTICATED", ""),
        Failure(.permissionDenied, "PROJECT_DISABLED", ""), Failure(.unauthenticated, "TOKEN_EXPIRED", ""),
    ])
    func `What would be refused again is not asked again`(_ failure: Failure) {
        var backoff = WatchBackoff()
        #expect(backoff.delay(after: AuthError(failure), jitter: 0) == nil)
    }
}

extension Auth {
    var isWatching: Bool { state.withLock { $0.watching != nil } }
    var isRefused: Bool { state.withLock { $0.watching?.watch.isRefused == true } }
}
