import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// A sign-up, or a sign-in with a custom token, whose answer was lost, and what the application does next.
@Suite(.timeLimit(.minutes(2))) struct LostSignUpTests {
    /// A proxy that is down, and an application behind it that lost the answer to its sign-up.
    private struct Scene {
        let proxy: CuttingProxy
        let storage: InMemoryStorage
        let auth: Auth

        init(
            _ application: Application, losing method: String = "SignUp", signedInAs email: String? = nil,
            _ signUp: (Auth) async throws -> Void
        ) async throws {
            proxy = CuttingProxy(target: application.server.port, methods: [method, "Refresh"])
            storage = InMemoryStorage()
            if let email {
                let user = try await application.auth().createUser(withEmail: email, password: password).user
                storage.save(user.saved.encoded())
            }
            auth = try application.auth(storage: storage, through: proxy.address, timeout: .seconds(3))
            proxy.cutNextAnswer(to: method, goingDown: true)
            let losing = self.auth
            let lost = try await error { try await signUp(losing) }
            #expect(lost.reason == "CONNECTION_LOST")
            #expect(lost.isRetryable)
        }

        /// Lets the application reach the server, and signs up.
        func again(_ signUp: (Auth) async throws -> AuthDataResult) async throws -> PosternAuth.User {
            proxy.comeUp()
            var user: PosternAuth.User?
            try await until("the sign-up is answered") {
                user = try? await signUp(auth).user
                return user != nil
            }
            return try #require(user)
        }

        /// Whether the storage has the sign-up.
        var isNoted: Bool {
            storage.load().map { SavedState.signUpAttempt(in: $0, tenantID: .empty) != nil } ?? false
        }

        /// A storage as this process leaves it if it ends now.
        func leftBehind() throws -> InMemoryStorage {
            let left = InMemoryStorage()
            left.save(try #require(storage.load()))
            return left
        }
    }

    private static func signUp(_ auth: Auth, _ email: String = "ada@example.com") async throws {
        try await auth.createUser(withEmail: email, password: password)
    }

    @Test func `A retry that is not sent leaves the sign-up to the next process`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application) { try await Self.signUp($0) }
            let auth = scene.auth
            let offline = try await error { try await Self.signUp(auth) }
            #expect(offline.isRetryable)
            #expect(scene.isNoted)
            // Nor is another sign-up sent before the outcome of the first is known.
            let other = try await error { try await Self.signUp(auth, "bob@example.com") }
            #expect(other.isRetryable)
            let next = try application.auth(storage: scene.leftBehind())
            try await until { next.currentUser != nil }
            #expect(next.currentUser?.email == "ada@example.com")
            scene.proxy.stop()
        }
    }

    @Test func `The same sign-up again gets the lost answer, and makes one account`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application) { try await Self.signUp($0) }
            application.server.clock.advance(by: .minutes(5))
            let user = try await scene.again {
                try await $0.createUser(withEmail: "ada@example.com", password: password)
            }
            #expect(scene.auth.currentUser === user)
            #expect(try await user.sessions().count == 1)
            #expect(!scene.isNoted)
            #expect(scene.storage.load() == user.saved.encoded())
            scene.proxy.stop()
        }
    }

    @Test func `A custom token that counts once signs in after its answer was lost`() async throws {
        try await Application.run { application in
            let made = try await UsersClient(channel: application.admin).createCustomToken(
                UsersCreateCustomTokenRequest(uid: "player-1"))
            let token = made.customToken.withBytes { String(decoding: $0, as: UTF8.self) }
            let scene = try await Scene(application, losing: "SignInWithCustomToken") { auth in
                try await auth.signIn(withCustomToken: token)
            }
            application.server.clock.advance(by: .minutes(1))
            let user = try await scene.again { try await $0.signIn(withCustomToken: token) }
            #expect(user.uid == "player-1")
            #expect(!scene.isNoted)
            scene.proxy.stop()
        }
    }

    @Test func `Another sign-up asks for the outcome of the lost one first`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application) { try await $0.signInAnonymously() }
            let bob = try await scene.again {
                try await $0.createUser(withEmail: "bob@example.com", password: password)
            }
            #expect(scene.proxy.requestCount("Refresh") == 1)
            #expect(scene.auth.currentUser === bob)
            #expect(!scene.isNoted)
            scene.proxy.stop()
        }
    }

    @Test func `An anonymous sign-in after a restart is the one that was lost`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application) { try await $0.signInAnonymously() }
            let next = try application.auth(storage: scene.leftBehind())
            let result = try await next.signInAnonymously()
            #expect(!result.additionalUserInfo.isNewUser)
            #expect(next.currentUser === result.user)
            scene.proxy.stop()
        }
    }

    @Test func `Signing out gives the lost sign-up up`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application) { try await Self.signUp($0) }
            #expect(scene.isNoted)
            try await scene.auth.signOut()
            #expect(scene.storage.load() == nil)
            scene.proxy.comeUp()
            await scene.auth.signUps.take()
            scene.auth.signUps.giveBack()
            #expect(scene.auth.currentUser == nil)
            #expect(try application.auth(storage: scene.storage).currentUser == nil)
            scene.proxy.stop()
        }
    }

    @Test func `A sign-up that is being finished signs nobody in after signing out, and its session ends`() async throws
    {
        try await Application.run { application in
            let scene = try await Scene(application) { try await Self.signUp($0) }
            let left = try scene.leftBehind()
            let proxy = CuttingProxy(target: application.server.port, methods: ["Refresh"])
            proxy.holdNextAnswer(to: "Refresh")
            let auth = try application.auth(storage: left, through: proxy.address)
            try await until { proxy.requestCount("Refresh") == 1 }
            try await auth.signOut()
            #expect(left.load() == nil)
            let again = try await application.auth().signIn(withEmail: "ada@example.com", password: password).user
            try await until("the session of the sign-up is over") {
                proxy.release()
                return try await again.sessions().count == 1
            }
            #expect(auth.currentUser == nil)
            #expect(left.load() == nil)
            proxy.stop()
            scene.proxy.stop()
        }
    }

    @Test func `What the signed-in user writes keeps the note of a lost sign-up`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application, signedInAs: "ada@example.com") {
                try await Self.signUp($0, "bob@example.com")
            }
            let ada = try #require(scene.auth.currentUser)
            scene.proxy.comeUp()
            try await until("the application is connected") { (try? await ada.idToken(forcingRefresh: true)) != nil }
            #expect(scene.isNoted)
            let bob = try await scene.again {
                try await $0.createUser(withEmail: "bob@example.com", password: password)
            }
            #expect(scene.auth.currentUser === bob)
            #expect(!scene.isNoted)
            scene.proxy.stop()
        }
    }
}
