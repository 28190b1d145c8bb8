import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// Each way to sign in, linking, and what refusals tell.
@Suite struct SignInTests {
    @Test func `An anonymous user is upgraded by linking a password and keeps its uid`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.signInAnonymously().user
            #expect(user.isAnonymous)
            #expect(user.email == nil)
            #expect(try await auth.signInAnonymously().user === user)
            let linked = try await user.link(
                with: EmailAuthProvider.credential(withEmail: "ada@example.com", password: password))
            #expect(linked.user === user)
            #expect(!user.isAnonymous)
            #expect(user.email == "ada@example.com")
            let again = try await application.auth().signIn(withEmail: "ada@example.com", password: password)
            #expect(again.user.uid == user.uid)
        }
    }

    @Test func `A custom token's user is signed in and proved again, and is not anonymous`() async throws {
        try await Application.run { application in
            let users = UsersClient(channel: application.admin)
            func token() async throws -> String {
                let made = try await users.createCustomToken(UsersCreateCustomTokenRequest(uid: "player-1"))
                return made.customToken.withBytes { String(decoding: $0, as: UTF8.self) }
            }
            let auth = try application.auth()
            let result = try await auth.signIn(withCustomToken: token())
            #expect(result.user.uid == "player-1")
            #expect(result.additionalUserInfo.isNewUser)
            #expect(result.additionalUserInfo.providerID == nil)
            #expect(!result.user.isAnonymous)
            let credential = CustomTokenProvider.credential(withToken: try await token())
            try await result.user.reauthenticate(with: credential)
            let refusal = try await error { _ = try await result.user.link(with: credential) }
            #expect(refusal.code == .invalidCredential)
            let bad = try await error { _ = try await auth.signIn(withCustomToken: "x.y.z") }
            #expect(bad.code == .invalidCustomToken)
            #expect(auth.currentUser === result.user)
        }
    }

    /// An admin takes away the only identity of a user who signed in with it. The server does not treat the session as
    /// that of an anonymous user, and neither does the client.
    @Test func `A user whose only provider an admin removed is not anonymous`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.signIn(with: application.credential(.google())).user
            _ = try await UsersClient(channel: application.admin).unlink(
                UsersUnlinkRequest(uid: Text(user.uid), providerID: "google.com"))
            try await user.reload()
            #expect(user.providerData.isEmpty && !user.isAnonymous)
            let guest = try await auth.signInAnonymously().user
            #expect(guest.isAnonymous && guest.uid != user.uid)
        }
    }

    /// Such a user can sign in again by a reset of the password. An email that nobody proved leads nowhere for sure.
    @Test func `An anonymous user who proves an email is not anonymous any more`() async throws {
        try await Application.run { application in
            try await application.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            let auth = try application.auth()
            let user = try await auth.signInAnonymously().user
            try await user.updateEmail(to: "ada@example.com")
            #expect(user.isAnonymous)
            _ = try await UsersClient(channel: application.admin).update(
                UsersUpdateRequest(
                    uid: Text(user.uid), updateMask: ProtobufFieldMask(paths: ["email_verified"]), emailVerified: true))
            try await user.reload()
            #expect(user.isEmailVerified && !user.isAnonymous)
            application.server.clock.advance(by: .minutes(6))
            let refusal = try await error { try await user.delete() }
            #expect(refusal.code == .requiresRecentLogin)
        }
    }

    @Test func `A provider's identity signs in, and fills the profile`() async throws {
        try await Application.run { application in
            let result = try await application.auth().signIn(with: application.credential(.google()))
            #expect(result.additionalUserInfo.isNewUser)
            #expect(result.additionalUserInfo.providerID == "google.com")
            #expect(result.additionalUserInfo.profile?.displayName == "Ada at Google")
            #expect(result.user.displayName == "Ada at Google")
            #expect(result.user.photoURL == "https://g.example/ada")
            #expect(result.user.isEmailVerified)
            #expect(result.user.providerData.map(\.uid) == ["g-1"])
        }
    }

    @Test func `An email that has an account gives a credential to be linked after signing in`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            try await auth.createUser(withEmail: "ada@gmail.com", password: password)
            let refusal = try await error {
                _ = try await auth.signIn(with: application.credential(.facebook()))
            }
            #expect(refusal.code == .accountExistsWithDifferentCredential)
            #expect(refusal.email == "ada@gmail.com")
            let pending = try #require(refusal.updatedCredential)
            let user = try await auth.signIn(withEmail: "ada@gmail.com", password: password).user
            try await user.link(with: pending)
            #expect(Set(user.providerData.map(\.providerID)) == ["password", "facebook.com"])
            try await user.unlink(fromProvider: "facebook.com")
            #expect(user.providerData.map(\.providerID) == ["password"])
            let last = try await error {
                _ = try await user.unlink(fromProvider: "password")
            }
            #expect(last.reason == "LAST_SIGN_IN_METHOD")
        }
    }

    @Test func `A credential of another account gives one that signs in to it`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let google = try await auth.signIn(with: application.credential(.google())).user
            let ada = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let refusal = try await error {
                _ = try await ada.link(with: application.credential(.google()))
            }
            #expect(refusal.code == .credentialAlreadyInUse)
            let other = try await auth.signIn(with: #require(refusal.updatedCredential)).user
            #expect(other.uid == google.uid)
        }
    }

    @Test func `A switched-off sign-up is adminRestrictedOperation, with what the tenant says instead`() async throws {
        try await Application.run { application in
            try await application.setTenant(["client.permissions.disabled_user_signup", "guidance"]) {
                $0.client = ClientConfig(permissions: ClientPermissions(disabledUserSignup: true))
                $0.guidance = Messages.Guidance(
                    locale: "en", message: "Ask the front desk.", helpURL: "https://help.example")
            }
            let auth = try application.auth()
            let refusals = [
                try await error {
                    _ = try await auth.createUser(withEmail: "ada@example.com", password: password)
                },
                try await error { _ = try await auth.signInAnonymously() },
                try await error {
                    _ = try await auth.signIn(with: application.credential(.google()))
                },
            ]
            for refusal in refusals {
                #expect(refusal.code == .adminRestrictedOperation)
                #expect(refusal.code.rawValue == 17085)
                #expect(refusal.guidance?.message == "Ask the front desk.")
                #expect(refusal.guidance?.url == "https://help.example")
                #expect(refusal.requestID?.isEmpty == false)
                #expect(!refusal.isRetryable)
            }
            try await application.setTenant(["enable_anonymous_user", "client.permissions.disabled_user_signup"]) { _ in
            }
            let anonymous = try await error { _ = try await auth.signInAnonymously() }
            #expect(anonymous.reason == "ADMIN_ONLY_OPERATION")
            #expect(anonymous.code == .adminRestrictedOperation)
            #expect(auth.currentUser == nil)
        }
    }

    @Test func `A failed sign-in leaves the current user alone, and text no wire can carry is refused here`()
        async throws
    {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let wrong = try await error {
                _ = try await auth.signIn(withEmail: "ada@example.com", password: "wrong horse")
            }
            #expect(wrong.code == .invalidCredential)
            let email = try await error {
                _ = try await auth.signIn(withEmail: "a\0@example.com", password: password)
            }
            #expect(email.code == .invalidEmail)
            let weak = try await error { try await user.updatePassword(to: "a\0bcdefgh") }
            #expect(weak.code == .weakPassword)
            #expect(auth.currentUser === user)
        }
    }

    @Test func `An address or a key that is none is refused when the Auth is made`() async throws {
        let address = try await error {
            _ = try Auth(configuration: .init(address: "nowhere", credentials: .none))
        }
        #expect(address.reason == "INVALID_ADDRESS")
        let key = try await error {
            _ = try Auth(configuration: .init(address: "127.0.0.1:1", credentials: .apiKey(Secret("a\0b"))))
        }
        #expect(key.code == .invalidAPIKey)
    }
}
