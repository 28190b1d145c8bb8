import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// What becomes of a signed-out user's session at the server.
@Suite struct SignOutTests {
    /// The names of the devices that the user is signed in on, listed with the user's own ID token.
    private func devices(of user: PosternAuth.User, _ application: Application) async throws -> [String] {
        let request = SessionsListRequest(idToken: Text(try await user.idToken()))
        let listed = try await SessionsClient(channel: application.admin).list(request)
        return listed.sessions.map(\.deviceName.string).sorted()
    }

    @Test func `A signed-out user's session lasts as long as somebody holds the user`() async throws {
        try await Application.run { application in
            let laptop = try application.auth(deviceName: "laptop")
            var held: PosternAuth.User? = try await laptop.createUser(
                withEmail: "ada@example.com", password: password
            ).user
            let phone = try application.auth(deviceName: "phone")
            let onPhone = try await phone.signIn(withEmail: "ada@example.com", password: password).user
            try await laptop.signOut()
            try await held?.reload()
            #expect(try await devices(of: onPhone, application) == ["laptop", "phone"])
            held = nil
            try await until { (try? await devices(of: onPhone, application)) == ["phone"] }
        }
    }

    @Test func `A user who made place for another is signed out at the server when nobody holds it`() async throws {
        try await Application.run { application in
            let auth = try application.auth(deviceName: "first")
            try await auth.createUser(withEmail: "ada@example.com", password: password)
            let again = try application.auth(deviceName: "second")
            let user = try await again.signIn(withEmail: "ada@example.com", password: password).user
            try await auth.createUser(withEmail: "bob@example.com", password: password)
            try await until { (try? await devices(of: user, application)) == ["second"] }
        }
    }

    @Test func `An application that ends without signing out finds its session again`() async throws {
        try await Application.run { application in
            let storage = InMemoryStorage()
            var auth: Auth? = try application.auth(storage: storage, deviceName: "laptop")
            try await auth?.createUser(withEmail: "ada@example.com", password: password)
            weak let dropped = auth
            auth = nil
            try await until { dropped == nil }
            let next = try application.auth(storage: storage)
            let user = try #require(next.currentUser)
            try await user.reload()
            #expect(try await devices(of: user, application) == ["laptop"])
        }
    }

    @Test func `Where nobody holds the user, the session is over when signing out returns`() async throws {
        try await Application.run { application in
            let phone = try application.auth(deviceName: "phone")
            let onPhone = try await phone.createUser(withEmail: "ada@example.com", password: password).user
            let laptop = try application.auth(deviceName: "laptop")
            try await laptop.signIn(withEmail: "ada@example.com", password: password)
            try await laptop.signOut()
            #expect(try await devices(of: onPhone, application) == ["phone"])
            // The work that goes on while somebody listens does not hold the user.
            let handle = laptop.addIDTokenDidChangeListener { _, _ in }
            try await laptop.signIn(withEmail: "ada@example.com", password: password)
            try await until { application.streamCount == 1 }
            try await laptop.signOut()
            try await until { (try? await devices(of: onPhone, application)) == ["phone"] }
            handle.remove()
        }
    }

    @Test func `A server that does not answer holds signing out up for two seconds, a held user not at all`()
        async throws
    {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let clock = application.clock()
            let auth = try application.auth(clock: clock, through: proxy.address)
            var held: PosternAuth.User? = try await auth.createUser(
                withEmail: "ada@example.com", password: password
            ).user
            proxy.hold()
            try await auth.signOut()
            #expect(held?.email == "ada@example.com")
            proxy.release()
            held = nil
            try await auth.signIn(withEmail: "ada@example.com", password: password)
            proxy.hold()
            let leaving = Task { try await auth.signOut() }
            try await until { clock.wakeUps == [.seconds(2)] }
            #expect(auth.currentUser == nil)
            clock.advance(by: .seconds(2))
            try await leaving.value
            proxy.stop()
        }
    }

    @Test func `Signing out works without the server`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let storage = InMemoryStorage()
            let (auth, user) = try await application.signedIn(
                storage: storage, through: proxy, timeout: .milliseconds(500))
            #expect(auth.currentUser === user)
            proxy.stop()
            try await auth.signOut()
            #expect(auth.currentUser == nil)
            #expect(storage.load() == nil)
        }
    }
}
