import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// While somebody guesses at an account, the user can still sign in on devices that are known.
@Suite struct KnownDeviceTests {
    /// Guesses from an unknown device until the server takes no more.
    private static func guess(_ application: Application) async throws {
        let stranger = try application.auth()
        for _ in 0..<20 {
            let refusal = try await error {
                _ = try await stranger.signIn(withEmail: "ada@example.com", password: "wrong")
            }
            if refusal.code == .tooManyRequests { return }
        }
        Issue.record("guesses were never refused")
    }

    @Test func `A device that signed in before gets in while somebody guesses, also after signing out`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            try await auth.createUser(withEmail: "ada@example.com", password: password)
            try await Self.guess(application)
            try await auth.signOut()
            try await auth.signIn(withEmail: "ada@example.com", password: password)
            let other = try application.auth()
            let unknown = try await error {
                _ = try await other.signIn(withEmail: "ada@example.com", password: password)
            }
            #expect(unknown.code == .tooManyRequests)
        }
    }

    @Test func `The token is in the storage, for the next run`() async throws {
        try await Application.run { application in
            let storage = InMemoryStorage()
            try await application.auth(storage: storage).createUser(withEmail: "ada@example.com", password: password)
            let record = try #require(storage.load())
            let saved = try #require(try SavedState(record, tenantID: .empty))
            #expect(!saved.deviceToken.isEmpty)
            try await Self.guess(application)
            let nextRun = try application.auth(storage: storage)
            let user = try #require(nextRun.currentUser)
            try await user.reauthenticate(
                with: EmailAuthProvider.credential(withEmail: "ada@example.com", password: password))
            try await user.updatePassword(to: "another horse")
            try await Self.guess(application)
            try await nextRun.signOut()
            try await nextRun.signIn(withEmail: "ada@example.com", password: "another horse")
        }
    }

    @Test func `Who resets the password on a device is known there`() async throws {
        try await Application.run { application in
            try await application.auth().createUser(withEmail: "ada@example.com", password: password)
            let auth = try application.auth()
            try await auth.sendPasswordReset(withEmail: "ada@example.com")
            let link = try await application.mailedLink()
            try await auth.confirmPasswordReset(withCode: link, newPassword: "another horse")
            try await Self.guess(application)
            try await auth.signIn(withEmail: "ada@example.com", password: "another horse")
        }
    }

    @Test func `A device that signed in by phone gets its code while strangers ask for codes to the number`()
        async throws
    {
        try await Application.run { application in
            try await application.setTenant(["enable_phone_signin"]) { $0.enablePhoneSignin = true }
            let (auth, number) = (try application.auth(), "+14155550123")
            try await auth.signIn(with: try await PhoneTests.credential(auth, application))
            try await auth.signOut()
            let stranger = PhoneAuthProvider.provider(auth: try application.auth())
            let refusal = try await error {
                for _ in 0..<20 { _ = try await stranger.verifyPhoneNumber(number) }
            }
            #expect(refusal.code == .tooManyRequests)
            let again = try await auth.signIn(with: try await PhoneTests.credential(auth, application))
            #expect(again.user.phoneNumber == number)
        }
    }
}
