import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// What needs a recent login, and how a session ends on other devices.
@Suite struct SessionTests {
    @Test func `A password change keeps this device and signs every other one out, with the cause`() async throws {
        try await Application.run { application in
            let (laptop, phone) = (try application.auth(), try application.auth())
            let onLaptop = try await laptop.createUser(withEmail: "ada@example.com", password: password).user
            let onPhone = try await phone.signIn(withEmail: "ada@example.com", password: password).user
            let (oldToken, oldRefresh) = (try await onLaptop.idToken(), onLaptop.refreshToken)
            var events = phone.idTokenEvents.makeAsyncIterator()
            _ = await events.next()

            try await onLaptop.updatePassword(to: "another horse")
            #expect(try await onLaptop.idToken() != oldToken)
            #expect(onLaptop.refreshToken != oldRefresh)
            try await onLaptop.reload()
            _ = try await onLaptop.idToken(forcingRefresh: true)

            let refusal = try await error { try await onPhone.reload() }
            #expect(refusal.code == .userTokenExpired)
            #expect(refusal.cause == .passwordChanged)
            #expect(phone.currentUser == nil)
            guard case .signedOut(let cause?) = await events.next()?.change else {
                Issue.record("the phone was not told why")
                return
            }
            #expect(cause.cause == .passwordChanged)
        }
    }

    @Test func `Deleting, changing email or password need a recent login, which proving again is`() async throws {
        try await Application.run { application in
            try await application.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            let auth = try application.auth()
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            application.server.clock.advance(by: .minutes(6))
            func refusals() async throws -> [AuthErrorCode] {
                [
                    try await error { try await user.updatePassword(to: "another horse") }.code,
                    try await error { try await user.updateEmail(to: "eve@example.com") }.code,
                    try await error {
                        try await user.sendEmailVerification(beforeUpdatingEmail: "eve@example.com")
                    }.code,
                    try await error { try await user.delete() }.code,
                ]
            }
            #expect(try await refusals() == Array(repeating: .requiresRecentLogin, count: 4))
            #expect(auth.currentUser === user)

            try await user.reauthenticate(
                with: EmailAuthProvider.credential(withEmail: "ada@example.com", password: password))
            try await user.updatePassword(to: "another horse")
            try await user.updateEmail(to: "eve@example.com")
            #expect(user.email == "eve@example.com")
            try await user.delete()
            #expect(auth.currentUser == nil)
            let gone = try await error { try await user.reload() }
            #expect(gone.code == .userNotFound)
        }
    }

    @Test func `A switched-off deletion is adminRestrictedOperation, and the user stays signed in`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            try await application.setTenant(["client.permissions.disabled_user_deletion", "guidance"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserDeletion: true))
                $0.guidance = Messages.Guidance(
                    locale: "en", message: "Ask the front desk.", helpURL: "https://help.example")
            }
            let refusal = try await error { try await user.delete() }
            #expect(refusal.code == .adminRestrictedOperation && refusal.code.rawValue == 17085)
            #expect(refusal.guidance?.message == "Ask the front desk.")
            #expect(auth.currentUser === user)
            try await user.reload()
        }
    }

    @Test func `Proving with another user's credential is a mismatch and ends nothing`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            _ = try await auth.createUser(withEmail: "bob@example.com", password: password)
            let ada = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let mismatch = try await error {
                try await ada.reauthenticate(
                    with: EmailAuthProvider.credential(withEmail: "bob@example.com", password: password))
            }
            #expect(mismatch.code == .userMismatch)
            let wrong = try await error {
                try await ada.reauthenticate(
                    with: EmailAuthProvider.credential(withEmail: "ada@example.com", password: "wrong horse"))
            }
            #expect(wrong.code == .invalidCredential)
            #expect(auth.currentUser === ada)
            try await ada.reload()
        }
    }

    @Test func `A user whom an admin disables or deletes is signed out, another's credential aside`() async throws {
        try await Application.run { application in
            let users = UsersClient(channel: application.admin)
            let auth = try application.auth()
            let bob = try await auth.createUser(withEmail: "bob@example.com", password: password).user
            let ada = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            var disabling = UsersUpdateRequest(uid: Text(bob.uid), updateMask: ProtobufFieldMask(paths: ["disabled"]))
            disabling.disabled = true
            _ = try await users.update(disabling)

            // The state of Bob's account says nothing about Ada.
            let refusal = try await error {
                try await ada.reauthenticate(
                    with: EmailAuthProvider.credential(withEmail: "bob@example.com", password: password))
            }
            #expect(refusal.code == .userDisabled)
            #expect(auth.currentUser === ada)

            try await auth.updateCurrentUser(bob)
            let disabled = try await error { try await bob.reload() }
            #expect(disabled.code == .userDisabled)
            #expect(auth.currentUser == nil)

            try await auth.updateCurrentUser(ada)
            _ = try await users.delete(UsersDeleteRequest(uid: Text(ada.uid)))
            let deleted = try await error { _ = try await ada.idToken(forcingRefresh: true) }
            #expect(deleted.code == .userNotFound)
            #expect(auth.currentUser == nil)
        }
    }

    @Test func `Being offline, or a tenant that is switched off, signs nobody out`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let ada = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            try await application.setTenant(["disable_auth"]) { $0.disableAuth = true }
            let off = try await error { _ = try await ada.idToken(forcingRefresh: true) }
            #expect(off.reason == "PROJECT_DISABLED")
            #expect(auth.currentUser === ada)
            _ = try await ada.idToken()
            try await application.setTenant(["disable_auth"]) { $0.disableAuth = false }

            let proxy = CuttingProxy(target: application.server.port)
            let (away, bob) = try await application.signedIn(
                "bob@example.com", through: proxy, timeout: .milliseconds(500))
            proxy.stop()
            let offline = try await error { _ = try await bob.idToken(forcingRefresh: true) }
            #expect(offline.code == .networkError)
            #expect(offline.isRetryable)
            #expect(away.currentUser === bob)
            // The token that the user has is still good.
            _ = try await bob.idToken()
        }
    }
}
