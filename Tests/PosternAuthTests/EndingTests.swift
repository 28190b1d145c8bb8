import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// What an application is told when a call fails, is cancelled, or ends the session.
@Suite(.timeLimit(.minutes(2))) struct EndingTests {
    @Test func `A user who was deleted meanwhile is not found, whatever the application asks first`() async throws {
        try await Application.run { application in
            for number in 0..<3 {
                let auth = try application.auth()
                let user = try await auth.createUser(withEmail: "u\(number)@example.com", password: password).user
                _ = try await UsersClient(channel: application.admin).delete(UsersDeleteRequest(uid: Text(user.uid)))
                let refusal = try await error {
                    switch number {
                    case 0: _ = try await user.idToken(forcingRefresh: true)
                    case 1: try await user.reload()
                    default: try await user.updatePassword(to: "another horse")
                    }
                }
                #expect(refusal.code == .userNotFound)
                #expect(auth.currentUser == nil)
            }
        }
    }

    @Test func `An empty password is a wrong one`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let signingIn = try await error { try await auth.signIn(withEmail: "ada@example.com", password: "") }
            #expect(signingIn.code == .wrongPassword)
            let again = try await error {
                try await user.reauthenticate(
                    with: EmailAuthProvider.credential(withEmail: "ada@example.com", password: ""))
            }
            #expect(again.code == .wrongPassword)
            let new = try await error { try await auth.createUser(withEmail: "bob@example.com", password: "") }
            #expect(new.code != .wrongPassword)
        }
    }

    @Test func `A task that is cancelled gets Swift's CancellationError`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port)
            let auth = try application.auth(through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let calls: [@Sendable () async throws -> Void] = [
                { try await user.reload() }, { _ = try await user.idToken(forcingRefresh: true) },
                { _ = try await user.sessions() }, { try await user.delete() },
                { try await user.updatePassword(to: "another horse") },
                { try await auth.signIn(withEmail: "ada@example.com", password: password) },
                { try await auth.sendPasswordReset(withEmail: "ada@example.com") },
                {
                    _ = try await OAuthProvider(providerID: .google).authorizationRequest(
                        continueURI: "a:/b", auth: auth)
                },
            ]
            for (index, call) in calls.enumerated() {
                // Cancelled before the call begins: a deletion that has left already would be done all the same.
                let task = Task {
                    withUnsafeCurrentTask { $0?.cancel() }
                    try await call()
                }
                let outcome = await task.result
                #expect(throws: CancellationError.self, "call \(index)") { try outcome.get() }
            }
            #expect(auth.currentUser === user)
            proxy.stop()
        }
    }

    @Test func `A deletion whose answer was lost is finished by the retry, without an error`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port, methods: ["Delete"])
            let auth = try application.auth(through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            proxy.cutNextAnswer(to: "Delete")
            let lost = try await error { try await user.delete() }
            #expect(lost.reason == Reason.connectionLost.name)
            var events = auth.idTokenEvents.makeAsyncIterator()
            _ = await events.next()
            try await user.delete()
            guard case .signedOut(nil) = await events.next()?.change else {
                Issue.record("the retry did not sign out without an error")
                return
            }
            #expect(auth.currentUser == nil)
            proxy.stop()
        }
    }

    @Test func `A deletion that was cancelled after it was sent is finished by the retry, too`() async throws {
        try await Application.run { application in
            let proxy = CuttingProxy(target: application.server.port, methods: ["Delete"])
            let auth = try application.auth(through: proxy.address)
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            proxy.hold()
            let deletion = Task { try await user.delete() }
            try await until("the server has deleted the account") {
                do {
                    _ = try await UsersClient(channel: application.admin).get(UsersGetRequest(uid: Text(user.uid)))
                    return false
                } catch let failure as Failure where failure.is(.userNotFound) {
                    return true
                }
            }
            deletion.cancel()
            let outcome = await deletion.result
            #expect(throws: CancellationError.self) { try outcome.get() }
            proxy.release()
            try await user.delete()
            #expect(auth.currentUser == nil)
            proxy.stop()
        }
    }

    @Test func `A call that ends the session returns when the storage is empty`() async throws {
        try await Application.run { application in
            for number in 0..<20 {
                let storage = InMemoryStorage()
                let auth = try application.auth(storage: storage)
                let user = try await auth.createUser(withEmail: "u\(number)@example.com", password: password).user
                _ = try await UsersClient(channel: application.admin).revokeTokens(
                    UsersRevokeTokensRequest(uid: Text(user.uid)))
                _ = try await error {
                    if number % 2 == 0 {
                        _ = try await user.idToken(forcingRefresh: true)
                    } else {
                        try await user.reload()
                    }
                }
                #expect(storage.load() == nil)
            }
        }
    }
}
