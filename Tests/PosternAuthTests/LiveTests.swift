import Base
import JSON
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// Changes by other devices and administrators are seen without a call, while somebody listens.
@Suite(.timeLimit(.minutes(2))) struct LiveTests {
    private static let email = "ada@example.com"

    /// Two devices of one user; the phone listens, so the server watches its user.
    private struct Scene {
        let laptop: Auth
        let phone: Auth
        let onLaptop: PosternAuth.User
        let onPhone: PosternAuth.User
        let phoneStorage = InMemoryStorage()
        let handle: ListenerHandle

        init(_ application: Application) async throws {
            laptop = try application.auth(deviceName: "laptop")
            phone = try application.auth(storage: phoneStorage, deviceName: "phone")
            onLaptop = try await laptop.createUser(withEmail: email, password: password).user
            onPhone = try await phone.signIn(withEmail: email, password: password).user
            handle = phone.addStateDidChangeListener { _, _ in }
            try await until { application.streamCount == 1 }
        }

        func rename(_ name: String) async throws {
            var request = onLaptop.createProfileChangeRequest()
            request.displayName = name
            try await request.commitChanges()
        }
    }

    @Test func `A password change on one device signs the other out, with the cause`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application)
            var events = scene.phone.idTokenEvents.makeAsyncIterator()
            _ = await events.next()
            try await scene.onLaptop.updatePassword(to: "another horse")
            guard case .signedOut(let error?) = await events.next()?.change else {
                Issue.record("the phone was not told")
                return
            }
            #expect(error.code == .userTokenExpired && error.cause == .passwordChanged)
            #expect(scene.phone.currentUser == nil)
            #expect(scene.laptop.currentUser === scene.onLaptop)
            try await until { scene.phoneStorage.load() == nil }
        }
    }

    enum Ending: CaseIterable { case revoked, disabled, deleted, byAnotherDevice }

    @Test(arguments: Ending.allCases)
    func `What ends a session elsewhere signs out here, and says what it was`(_ ending: Ending) async throws {
        try await Application.run { application in
            let scene = try await Scene(application)
            var events = scene.phone.idTokenEvents.makeAsyncIterator()
            _ = await events.next()
            let users = UsersClient(channel: application.admin)
            let uid = Text(scene.onPhone.uid)
            switch ending {
            case .revoked: _ = try await users.revokeTokens(UsersRevokeTokensRequest(uid: uid))
            case .disabled:
                var request = UsersUpdateRequest(uid: uid, updateMask: ProtobufFieldMask(paths: ["disabled"]))
                request.disabled = true
                _ = try await users.update(request)
            case .deleted: _ = try await users.delete(UsersDeleteRequest(uid: uid))
            case .byAnotherDevice: try await scene.onLaptop.signOutOtherSessions()
            }
            guard case .signedOut(let error?) = await events.next()?.change else {
                Issue.record("the phone was not told")
                return
            }
            switch ending {
            case .revoked: #expect(error.code == .userTokenExpired && error.cause == .admin)
            case .disabled: #expect(error.code == .userDisabled)
            case .deleted: #expect(error.code == .userNotFound)
            case .byAnotherDevice: #expect(error.code == .userTokenExpired && error.cause == .signedOut)
            }
            #expect(scene.phone.currentUser == nil)
            try await until { application.streamCount == 0 }
        }
    }

    @Test func `What another device changes is in the user, in the storage, and an event of its own`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application)
            let (states, tokens) = (Recording<String?>(), Recording<String?>())
            scene.phone.addStateDidChangeListener { _, user in states.append(user?.displayName) }
            scene.phone.addIDTokenDidChangeListener { _, user in tokens.append(user?.displayName) }
            try await until { states.elements.count == 1 && tokens.elements.count == 1 }
            var events = scene.phone.idTokenEvents.makeAsyncIterator()
            _ = await events.next()
            try await scene.rename("Ada")
            let event = await events.next()
            #expect(event.map { "\($0.change)" } == "profileChanged")
            #expect(event?.user === scene.onPhone)
            #expect(scene.onPhone.displayName == "Ada")
            try await until {
                let saved = scene.phoneStorage.load().flatMap { try? SavedState($0, tenantID: .empty) }
                return saved?.account.displayName == "Ada"
            }
            // Firebase's own listeners are told what they always were: the next token.
            _ = try await scene.onPhone.idToken(forcingRefresh: true)
            try await until { tokens.elements.count == 2 }
            #expect(states.elements.count == 1)
        }
    }

    @Test func `An administrator's claims are an event, and in the next token`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application)
            var events = scene.phone.idTokenEvents.makeAsyncIterator()
            _ = await events.next()
            _ = try await UsersClient(channel: application.admin).setCustomClaims(
                UsersSetCustomClaimsRequest(
                    uid: Text(scene.onPhone.uid), customClaimsJSON: [UInt8](#"{"role":"editor"}"#.utf8)))
            #expect(await events.next().map { "\($0.change)" } == "profileChanged")
            let result = try await scene.onPhone.idTokenResult(forcingRefresh: true)
            #expect(result[claim: "role"]?.string == "editor")
        }
    }

    @Test func `A change of one's own is told once, and deleting oneself has no error`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application)
            var events = scene.laptop.idTokenEvents.makeAsyncIterator()
            _ = await events.next()
            try await until { application.streamCount == 2 }
            try await scene.rename("Ada")
            #expect(await events.next().map { "\($0.change)" } == "profileChanged")
            try await scene.onLaptop.updatePassword(to: "another horse")
            #expect(
                await events.next().map { "\($0.change)" }
                    == "tokenRefreshed(PosternAuth.TokenRefreshCause.passwordChanged)")
            try await scene.onLaptop.delete()
            #expect(await events.next().map { "\($0.change)" } == "signedOut(nil)")
        }
    }

    /// Each new password ends the stream, which was opened with a token from before it.
    @Test func `Who changes the password again and again is still told what others change`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application)
            var events = scene.laptop.idTokenEvents.makeAsyncIterator()
            _ = await events.next()
            for number in 1...4 {
                try await until { application.streamCount >= 1 }
                try await scene.onLaptop.updatePassword(to: "another horse \(number)")
                #expect(
                    await events.next().map { "\($0.change)" }
                        == "tokenRefreshed(PosternAuth.TokenRefreshCause.passwordChanged)")
                _ = try await UsersClient(channel: application.admin).setCustomClaims(
                    UsersSetCustomClaimsRequest(
                        uid: Text(scene.onLaptop.uid), customClaimsJSON: [UInt8](#"{"level":\#(number)}"#.utf8)))
                #expect(await events.next().map { "\($0.change)" } == "profileChanged")
            }
        }
    }

    @Test func `What changed while nobody listened is seen when somebody begins to`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application)
            scene.handle.remove()
            try await until { application.streamCount == 0 }
            try await scene.rename("Ada")
            #expect(scene.onPhone.displayName == nil)
            var events = scene.phone.idTokenEvents.makeAsyncIterator()
            #expect(await events.next().map { "\($0.change)" } == "initialized")
            #expect(await events.next().map { "\($0.change)" } == "profileChanged")
            #expect(scene.onPhone.displayName == "Ada")
        }
    }

    @Test func `A user from the storage is not news to its own stream`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application)
            try await scene.rename("Ada")
            _ = try await UsersClient(channel: application.admin).setCustomClaims(
                UsersSetCustomClaimsRequest(
                    uid: Text(scene.onPhone.uid), customClaimsJSON: [UInt8](#"{"role":"editor"}"#.utf8)))
            try await scene.onLaptop.reload()
            let storage = InMemoryStorage()
            storage.save(scene.onLaptop.saved.encoded())
            let restarted = try application.auth(storage: storage)
            #expect(try #require(restarted.currentUser).saved.account == scene.onLaptop.saved.account.asKept)
            var events = restarted.idTokenEvents.makeAsyncIterator()
            #expect(await events.next().map { "\($0.change)" } == "initialized")
            try await until { application.streamCount == 2 }
            // The first message of the stream came before this.
            try await scene.rename("Countess")
            #expect(await events.next().map { "\($0.change)" } == "profileChanged")
            #expect(restarted.currentUser?.displayName == "Countess")
        }
    }

    @Test func `New tokens of somebody who shares the session change nothing here`() async throws {
        try await Application.run { application in
            let scene = try await Scene(application)
            let copy = InMemoryStorage()
            copy.save(scene.onPhone.saved.encoded())
            let twin = try application.auth(storage: copy)
            var events = scene.phone.idTokenEvents.makeAsyncIterator()
            _ = await events.next()
            let token = try await scene.onPhone.idToken()
            _ = try await twin.currentUser?.idToken(forcingRefresh: true)
            try await scene.rename("Ada")
            #expect(await events.next().map { "\($0.change)" } == "profileChanged")
            #expect(try await scene.onPhone.idToken() == token)
        }
    }
}

extension Messages.User {
    /// The user without the fields that an application is never shown.
    fileprivate var asKept: Messages.User {
        var user = self
        user.lastRefreshAtMicros = 0
        user.tokensValidAfterMicros = 0
        return user
    }
}
