import Base
import TestSupport
import Testing

@testable import PosternAuth

/// Links in mails: verify, reset, sign in, change.
@Suite struct ActionCodeTests {
    @Test func `Verifying an email`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            #expect(!user.isEmailVerified)
            try await user.sendEmailVerification()
            let link = try await application.mailedLink()
            let info = try await auth.checkActionCode(link)
            #expect(info.operation == .verifyEmail && info.email == "ada@example.com" && info.previousEmail == nil)
            #expect(info.account?.liveSessionCount == 1 && info.account?.signInMethods == ["password"])
            try await auth.applyActionCode(link)
            try await user.reload()
            #expect(user.isEmailVerified)
            let used = try await error { try await auth.applyActionCode(link) }
            #expect(used.code == .invalidActionCode)
        }
    }

    @Test func `A new password by a code signs every device out, with the cause`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let visitor = try application.auth()
            try await visitor.sendPasswordReset(
                withEmail: "ada@example.com", actionCodeSettings: ActionCodeSettings(url: "https://issuer.test/in"))
            let link = try await application.mailedLink()
            let code = try #require(ActionLink(link).code)
            #expect(try await visitor.verifyPasswordResetCode(code) == "ada@example.com")
            try await visitor.confirmPasswordReset(withCode: code, newPassword: "another horse")
            let refusal = try await error { _ = try await user.idToken(forcingRefresh: true) }
            #expect(refusal.cause == .passwordChanged)
            #expect(auth.currentUser == nil)
            try await visitor.signIn(withEmail: "ada@example.com", password: "another horse")
        }
    }

    @Test func `Signing in, and up, by link`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            try await auth.sendSignInLink(toEmail: "ada@example.com")
            let link = try await application.mailedLink()
            #expect(auth.isSignIn(withEmailLink: link))
            #expect(!auth.isSignIn(withEmailLink: "https://app.example/?mode=verifyEmail&oobCode=a"))
            let other = try await error {
                _ = try await auth.signIn(withEmail: "eve@example.com", link: link)
            }
            #expect(other.code == .invalidEmail)
            let code = try await error { _ = try await auth.verifyPasswordResetCode(link) }
            #expect(code.code == .invalidActionCode)
            let result = try await auth.signIn(withEmail: "ada@example.com", link: link)
            #expect(result.additionalUserInfo.isNewUser)
            #expect(result.user.isEmailVerified)
        }
    }

    @Test func `A change of email is proved at the new address, and ends the session`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            let user = try await auth.createUser(withEmail: "ada@example.com", password: password).user
            let refused = try await error { try await user.updateEmail(to: "new@example.com") }
            #expect(refused.code == .operationNotAllowed)
            try await user.sendEmailVerification(beforeUpdatingEmail: "new@example.com")
            let link = try await application.mailedLink()
            let info = try await auth.checkActionCode(link)
            #expect(info.operation == .verifyAndChangeEmail)
            #expect(info.email == "new@example.com")
            #expect(info.previousEmail == "ada@example.com")
            try await auth.applyActionCode(link)
            let over = try await error { try await user.reload() }
            #expect(over.code == .userTokenExpired)
            #expect(auth.currentUser == nil)
            try await auth.signIn(withEmail: "new@example.com", password: password)
        }
    }

    @Test func `An expired code has a code of its own`() async throws {
        try await Application.run { application in
            let auth = try application.auth()
            try await auth.sendSignInLink(toEmail: "ada@example.com")
            let link = try await application.mailedLink()
            application.server.clock.advance(by: .minutes(16))
            let expired = try await error {
                _ = try await auth.signIn(withEmail: "ada@example.com", link: link)
            }
            #expect(expired.code == .expiredActionCode)
        }
    }
}
