import Base
import TestSupport
import Testing

@testable import PosternAuth

/// Where a user is signed in, and signing out there.
@Suite struct UserSessionTests {
    private static let email = "ada@example.com"

    @Test func `Sessions tell device, times and which is this one`() async throws {
        try await Application.run { application in
            let began = application.server.clock.clock.now()
            let onPhone = try await application.auth(deviceName: "phone")
                .createUser(withEmail: Self.email, password: password).user
            application.server.clock.advance(by: .minutes(1))
            let onLaptop = try await application.auth(deviceName: "laptop")
                .signIn(withEmail: Self.email, password: password).user
            let sessions = try await onPhone.sessions()
            #expect(sessions.map(\.deviceName) == ["laptop", "phone"])
            #expect(sessions.map(\.isCurrent) == [false, true])
            #expect(sessions.map(\.creationDate) == [began + .minutes(1), began])
            #expect(sessions.map(\.authDate) == sessions.map(\.creationDate))
            #expect(sessions.allSatisfy { $0.signInProvider == "password" && $0.endUserIP == nil })
            #expect(sessions.allSatisfy { $0.expirationDate > $0.lastUsedDate })
            #expect(try await onLaptop.sessions().map(\.id) == sessions.map(\.id))
        }
    }

    @Test func `Another device is signed out by its session's id, and a stranger's id is refused`() async throws {
        try await Application.run { application in
            let phone = try application.auth()
            let onPhone = try await phone.createUser(withEmail: Self.email, password: password).user
            let onLaptop = try await application.auth().signIn(withEmail: Self.email, password: password).user
            let other = try #require(try await onPhone.sessions().first { !$0.isCurrent })
            try await onPhone.revokeSession(other.id)
            #expect(try await onPhone.sessions().count == 1)
            let over = try await error { try await onLaptop.reload() }
            #expect(over.code == .userTokenExpired && over.cause == .signedOut)

            let bob = try await application.auth().createUser(withEmail: "bob@example.com", password: password).user
            let bobs = try #require(try await bob.sessions().first)
            for id in [bobs.id, "none", ""] {
                let refusal = try await error { try await onPhone.revokeSession(id) }
                #expect(refusal.reason == (id.isEmpty ? "MISSING_SESSION_ID" : "SESSION_NOT_FOUND"))
            }
            try await bob.reload()
            #expect(phone.currentUser === onPhone)
        }
    }

    @Test func `Revoking one's own session signs out, without an error`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.createUser(withEmail: Self.email, password: password).user
            var events = auth.idTokenEvents.makeAsyncIterator()
            _ = await events.next()
            try await user.revokeSession(try #require(try await user.sessions().first).id)
            #expect(auth.currentUser == nil)
            #expect(await events.next().map { "\($0.change)" } == "signedOut(nil)")
        }
    }

    @Test func `Signing out everywhere else ends all sessions but this`() async throws {
        try await Application.run { application in
            let user = try await application.auth().createUser(withEmail: Self.email, password: password).user
            let others = [try application.auth(), try application.auth()]
            for other in others { try await other.signIn(withEmail: Self.email, password: password) }
            #expect(try await user.signOutOtherSessions() == 2)
            #expect(try await user.sessions().map(\.isCurrent) == [true])
            for other in others {
                let held = try #require(other.currentUser)
                _ = try await error { try await held.reload() }
                #expect(other.currentUser == nil)
            }
        }
    }
}
