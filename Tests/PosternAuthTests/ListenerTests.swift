import Base
import Synchronization
import TestSupport
import Testing

@testable import PosternAuth

/// What listeners are told, and that no listener waits for another.
@Suite(.timeLimit(.minutes(2))) struct ListenerTests {
    private func word(_ event: IDTokenEvent?) -> String? { event.map { "\($0.change)" } }

    @Test func `Listeners are told who is signed in already, then sign-out and sign-in`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            var events = auth.idTokenEvents.makeAsyncIterator()
            var event = await events.next()
            #expect(event?.user === user)
            #expect(word(event) == "initialized")
            try await auth.signOut()
            event = await events.next()
            #expect(event?.user == nil)
            #expect(word(event) == "signedOut(nil)")
            let again = try await auth.signIn(withEmail: "ada@example.com", password: password).user
            event = await events.next()
            #expect(event?.user === again)
            #expect(word(event) == "signedIn")
        }
    }

    @Test func `A user of an earlier run is the first a listener hears of`() async throws {
        try await Application.run { application in
            let storage = InMemoryStorage()
            let user = try await application.auth(storage: storage)
                .createUser(withEmail: "ada@example.com", password: password).user
            let auth = try application.auth(storage: storage)
            var changes = auth.authStateChanges.makeAsyncIterator()
            #expect(await changes.next()?.map(\.uid) == .some(user.uid))
        }
    }

    @Test func `A refresh tells its cause: expired, password changed, proved again, linked`() async throws {
        try await Application.run { application in
            let clock = application.clock()
            let auth = try application.auth(clock: clock)
            let user = try await auth.createUser(withEmail: "ada@gmail.com", password: password).user
            var events = auth.idTokenEvents.makeAsyncIterator()
            _ = await events.next()
            func cause() async -> TokenRefreshCause? {
                guard case .tokenRefreshed(let cause) = await events.next()?.change else { return nil }
                return cause
            }
            _ = try await user.idToken(forcingRefresh: true)
            #expect(await cause() == .requested)
            try await user.updatePassword(to: "another horse")
            #expect(await cause() == .passwordChanged)
            try await user.reauthenticate(
                with: EmailAuthProvider.credential(withEmail: "ada@gmail.com", password: "another horse"))
            #expect(await cause() == .reauthenticated)
            try await user.link(with: application.credential(.google()))
            #expect(await cause() == .providersChanged)
            try await user.unlink(fromProvider: "google.com")
            #expect(await cause() == .providersChanged)
            application.server.clock.advance(by: .hours(1))
            clock.advance(by: .hours(1))
            #expect(await cause() == .expired)
        }
    }

    @Test func `State listeners hear of changes of the uid only, token listeners of every token`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let (states, tokens) = (Recording<String?>(), Recording<String?>())
            let stateHandle = auth.addStateDidChangeListener { _, user in states.append(user?.uid) }
            let tokenHandle = auth.addIDTokenDidChangeListener { _, user in tokens.append(user?.uid) }
            try await until { states.elements == [nil] && tokens.elements == [nil] }
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            try await until { states.elements == [nil, user.uid] && tokens.elements.count == 2 }
            _ = try await user.idToken(forcingRefresh: true)
            try await until { tokens.elements == [nil, user.uid, user.uid] }
            try await auth.signOut()
            try await until { states.elements == [nil, user.uid, nil] && tokens.elements.count == 4 }
            stateHandle.remove()
            tokenHandle.remove()
            try await auth.signIn(withEmail: "ada@example.com", password: password)
            var after = auth.authStateChanges.makeAsyncIterator()
            #expect(await after.next()?.map(\.uid) == .some(user.uid))
            #expect(states.elements.count == 3 && tokens.elements.count == 4)
        }
    }

    @Test func `Listeners that block delay nobody else, and then see the newest state`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let gate = Semaphore()
            let blocked = Recording<String?>()
            // There are more listeners than the default pool has threads.
            for _ in 0..<16 {
                auth.addStateDidChangeListener { _, user in
                    blocked.append(user?.uid)
                    gate.wait()
                }
            }
            try await until { blocked.elements.count == 16 }
            let prompt = Recording<String?>()
            auth.addStateDidChangeListener { _, user in prompt.append(user?.uid) }
            try await until { prompt.elements == [nil] }
            let ada = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            try await until { prompt.elements == [nil, ada.uid] }
            let bob = try await auth.createUser(withEmail: "bob@example.com", password: password).user
            try await until { prompt.elements == [nil, ada.uid, bob.uid] }
            #expect(blocked.elements.count == 16)
            for _ in 0..<32 { gate.signal() }
            try await until { blocked.elements.count == 32 }
            #expect(Set(blocked.elements[16...]) == [bob.uid])
        }
    }

    @Test func `A slow reader sees only the newest state, and nothing where it is the one it saw`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            var slow = auth.authStateChanges.makeAsyncIterator()
            #expect(await slow.next()?.map(\.uid) == .some(nil))
            for number in 0..<3 { try await auth.createUser(withEmail: "u\(number)@example.com", password: password) }
            let newest = try #require(auth.currentUser)
            #expect(await slow.next()?.map(\.uid) == .some(newest.uid))
            // The same user is back after the sign-out: that is no news.
            try await auth.signOut()
            try await auth.updateCurrentUser(newest)
            let last = try await auth.createUser(withEmail: "last@example.com", password: password).user
            #expect(await slow.next()?.map(\.uid) == .some(last.uid))
        }
    }

    @Test func `Every iterator listens for itself, and ends with its task`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let sequence = auth.authStateChanges
            var (first, second) = (sequence.makeAsyncIterator(), sequence.makeAsyncIterator())
            #expect(await first.next()?.map(\.uid) == .some(nil))
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            #expect(await first.next()?.map(\.uid) == .some(user.uid))
            #expect(await second.next()?.map(\.uid) == .some(user.uid))

            let reader = Task {
                var count = 0
                for await _ in auth.idTokenChanges { count += 1 }
                return count
            }
            try await until { auth.observerCount == 3 }
            reader.cancel()
            _ = await reader.value
            #expect(auth.observerCount == 2)
        }
    }

    @Test func `Another profile is news to who reads events, and hides no event that waits`() {
        let (signedIn, profile) = (
            IDTokenEvent(user: nil, change: .signedIn), IDTokenEvent(user: nil, change: .profileChanged)
        )
        for interest in [Interest.users, .tokens, .events] {
            var newest = NewestEvent(interest)
            let puts = [newest.put(signedIn), newest.put(profile)]
            #expect(puts == [true, false])
            let waited = newest.take()
            #expect(word(waited) == "signedIn")
            let isNews = newest.put(profile)
            #expect(isNews == (interest == .events))
            let told = newest.take()
            #expect(word(told) == (interest == .events ? "profileChanged" : nil))
        }
    }

    /// A part of an application that listens with a closure which uses it, and that keeps the handle.
    private final class Screen: Sendable {
        private let handle = Mutex<ListenerHandle?>(nil)
        private let calls = Recording<Bool>()
        private let isGone: Recording<Bool>

        init(isGone: Recording<Bool>) { self.isGone = isGone }

        deinit {
            handle.withLock { $0 }?.remove()
            isGone.append(true)
        }

        func open(_ auth: Auth) {
            let added = auth.addStateDidChangeListener { _, _ in self.calls.append(true) }
            handle.withLock { $0 = added }
        }

        func close() { handle.withLock { $0 }?.remove() }

        var callCount: Int { calls.elements.count }
    }

    @Test func `Removing a listener, or dropping its Auth, frees what its closure uses`() async throws {
        try await Application.run { application in
            for isRemoved in [true, false] {
                let isGone = Recording<Bool>()
                var auth: Auth? = try application.auth()
                var screen: Screen? = Screen(isGone: isGone)
                if let auth { screen?.open(auth) }
                try await until { screen?.callCount == 1 }
                if isRemoved { screen?.close() } else { auth = nil }
                screen = nil
                try await until { isGone.elements == [true] }
                #expect((auth?.observerCount ?? 0) == 0)
            }
        }
    }

    @Test func `A listener does not keep its Auth alive`() async throws {
        try await Application.run { application in
            var auth: Auth? = try application.auth()
            weak let kept = auth
            let calls = Recording<Bool>()
            let handle = auth?.addStateDidChangeListener { _, _ in calls.append(true) }
            try await until { calls.elements.count == 1 }
            auth = nil
            try await until { kept == nil }
            handle?.remove()
        }
    }
}

extension Auth {
    var observerCount: Int { state.withLock { $0.observers.count } }
}
