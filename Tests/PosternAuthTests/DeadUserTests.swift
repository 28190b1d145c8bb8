import Base
import Messages
import PosternClient
import Synchronization
import TestSupport
import Testing

@testable import PosternAuth

/// Code that was slow while a session ended and the same person signed in again must not hold on to a dead user.
@Suite(.timeLimit(.minutes(2))) struct DeadUserTests {
    private func endSessions(of user: PosternAuth.User, _ application: Application) async throws {
        _ = try await UsersClient(channel: application.admin).revokeTokens(
            UsersRevokeTokensRequest(uid: Text(user.uid)))
        let refusal = try await error { _ = try await user.idToken(forcingRefresh: true) }
        #expect(refusal.code == .userTokenExpired)
    }

    @Test func `A listener that was busy meanwhile is told of the new object of the same user`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let first = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let (told, gate) = (Recording<PosternAuth.User?>(), Semaphore())
            let handle = auth.addStateDidChangeListener { _, user in
                told.append(user)
                gate.wait()
            }
            try await until { told.elements.count == 1 }
            try await endSessions(of: first, application)
            let second = try await auth.signIn(withEmail: "ada@example.com", password: password).user
            for _ in 0..<8 { gate.signal() }
            try await until { told.elements.last.flatMap { $0 } === second }
            #expect(auth.currentUser === second)
            _ = try await told.elements.last??.idToken(forcingRefresh: true)
            handle.remove()
        }
    }

    @Test func `A reader that was busy meanwhile is told of the new object of the same user`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let first = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            var changes = auth.authStateChanges.makeAsyncIterator()
            #expect(await changes.next()?.map { $0 === first } == .some(true))
            try await endSessions(of: first, application)
            let second = try await auth.signIn(withEmail: "ada@example.com", password: password).user
            let next = Mutex(changes)
            let told = Recording<PosternAuth.User?>()
            let reader = Task {
                var changes = next.withLock { $0 }
                if let user = await changes.next() { told.append(user) }
            }
            try await until { told.elements.count == 1 }
            #expect(told.elements.first.flatMap { $0 } === second)
            reader.cancel()
        }
    }

    /// Every order of short histories, with an observer that looks at any time: at the end it holds the current user.
    @Test func `After any history the last user that an observer was told of is the current one`() {
        struct Model {
            var newest = NewestEvent(.users)
            var told: PosternAuth.User?
        }
        let users = (0..<2).map { _ in PosternAuth.User.unreachable(uid: "u1") } + [.unreachable(uid: "u2")]
        // 0: nobody is signed in; 1…3: a user is; 4: the observer looks.
        for history in 0..<3_125 {
            var (model, current, digits) = (Model(), PosternAuth.User?.none, history)
            for _ in 0..<5 {
                let step = digits % 5
                digits /= 5
                if step == 4 {
                    if let event = model.newest.take() { model.told = event.user }
                } else {
                    current = step == 0 ? nil : users[step - 1]
                    let change: IDTokenEvent.Change = current == nil ? .signedOut(nil) : .signedIn
                    _ = model.newest.put(IDTokenEvent(user: current, change: change))
                }
            }
            if let event = model.newest.take() { model.told = event.user }
            #expect(model.told === current, "history \(history)")
        }
    }
}

extension PosternAuth.User {
    /// A user whose server cannot be reached, and whose session needs no end.
    fileprivate static func unreachable(uid: Text) -> PosternAuth.User {
        guard let channel = try? Channel(address: "127.0.0.1:1", credentials: .none) else {
            preconditionFailure("the address is one")
        }
        let clock = TestClock(wallStartingAt: Timestamp(seconds: 1)).clock
        let backend = Backend(
            accounts: AccountsClient(channel: channel), tokens: TokensClient(channel: channel),
            sessions: SessionsClient(channel: channel), tenantID: .empty, clock: clock, random: .operatingSystem,
            deviceName: .empty, endUserIP: .empty, language: Language(code: .empty), device: KnownDevice())
        let tokens = TokenSet(idToken: "i", refreshToken: "r", lifetime: .hours(1), asked: clock.moment())
        let user = PosternAuth.User(Messages.User(uid: uid), tokens, backend: backend)
        user.state.withLock { $0.isOver = true }
        return user
    }
}
