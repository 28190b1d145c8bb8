import Base
import Messages
import PosternClient
import Rules
import TestSupport
import Testing

@testable import Identity
@testable import PosternAuth

/// Every way to sign in leads to the second factor, or to adding the first.
@Suite struct SecondFactorSignInTests {
    private typealias Scene = SecondFactorScene

    @Test func `Every way to sign in asks for the factor`() async throws {
        try await Scene.run { scene in
            let application = scene.application
            try await scene.ada.link(with: application.credential(.google()))
            let custom = try await UsersClient(channel: application.admin).createCustomToken(
                UsersCreateCustomTokenRequest(uid: Text(scene.ada.uid))
            ).customToken
            try await scene.addAuthenticator()
            let auth = try application.auth()
            try await auth.sendSignInLink(toEmail: Scene.email)
            let link = try await application.mailedLink()
            let ways: [AuthCredential] = [
                EmailAuthProvider.credential(withEmail: Scene.email, password: password),
                EmailAuthProvider.credential(withEmail: Scene.email, link: link),
                application.credential(.google()),
                CustomTokenProvider.credential(withToken: custom.string),
            ]
            for way in ways {
                let resolver = try await scene.resolver { try await auth.signIn(with: way) }
                #expect(resolver.hints.count == 1 && auth.currentUser == nil, "\(way)")
            }
        }
    }

    @Test func `Where a factor is mandatory, the first sign-in verifies the email and adds one`() async throws {
        try await Scene.run(.mandatory) { scene in
            let auth = try scene.application.auth()
            let refusal = try await error {
                try await auth.createUser(withEmail: "bob@example.com", password: password)
            }
            #expect(refusal.is(.secondFactorEnrollmentRequired) && refusal.code == .secondFactorRequired)
            #expect(refusal.multiFactorResolver == nil)
            let enrollment = try #require(refusal.multiFactorEnrollment)
            let unverified = try await error {
                _ = try await TOTPMultiFactorGenerator.generateSecret(with: enrollment.session)
            }
            #expect(unverified.code == .unverifiedEmail && auth.currentUser == nil)
            try await enrollment.sendEmailVerification()
            try await auth.applyActionCode(try await scene.application.mailedLink())
            let secret = try await TOTPMultiFactorGenerator.generateSecret(with: enrollment.session)
            let assertion = TOTPMultiFactorGenerator.assertionForEnrollment(
                with: secret, oneTimePassword: try scene.code(secret))
            let result = try await enrollment.enroll(with: assertion, displayName: "phone")
            #expect(result.recoveryCodes.count == 10 && auth.currentUser === result.user)
            #expect(result.user.multiFactor.enrolledFactors.map(\.displayName) == ["phone"])
            #expect(try await result.user.idTokenResult().signInSecondFactor == "totp")
        }
    }

    @Test func `Where a factor is mandatory, a user without an email adds one first`() async throws {
        try await Scene.run(.mandatory) { scene in
            let auth = try scene.application.auth()
            let provider = PhoneAuthProvider.provider(auth: auth)
            func enrollment() async throws -> MultiFactorEnrollment {
                scene.application.server.clock.advance(by: .minutes(1))
                let id = try await provider.verifyPhoneNumber(Scene.number)
                let phone = provider.credential(withVerificationID: id, verificationCode: "123456")
                return try #require(try await error { try await auth.signIn(with: phone) }.multiFactorEnrollment)
            }
            try await enrollment().sendEmailVerification(beforeUpdatingEmail: "bob@example.com")
            try await auth.applyActionCode(try await scene.application.mailedLink())
            let second = try await enrollment()
            let secret = try await TOTPMultiFactorGenerator.generateSecret(with: second.session)
            let assertion = TOTPMultiFactorGenerator.assertionForEnrollment(
                with: secret, oneTimePassword: try scene.code(secret))
            #expect(try await second.enroll(with: assertion).user.email == "bob@example.com")
        }
    }

    @Test func `What belongs to another step is refused here`() async throws {
        try await Scene.run { scene in
            let secret = try await scene.addAuthenticator().secret
            let resolver = try await scene.resolver(try scene.application.auth())
            let provider = PhoneAuthProvider.provider(auth: scene.auth)
            let enrolling = TOTPMultiFactorGenerator.assertionForEnrollment(with: secret, oneTimePassword: "123456")
            let signingIn = scene.assertion(try #require(resolver.hints.first), "123456")
            let session = try await scene.ada.multiFactor.session()
            let phone = PhoneMultiFactorInfo(
                uid: "f", displayName: nil, enrollmentDate: Timestamp(microseconds: 0), phoneNumber: "")
            let refusals: [(AuthErrorCode, () async throws -> Void)] = [
                (.invalidCredential, { try await resolver.resolveSignIn(with: enrolling) }),
                (.invalidCredential, { try await scene.ada.multiFactor.enroll(with: signingIn) }),
                (
                    .invalidMultiFactorSession,
                    { _ = try await TOTPMultiFactorGenerator.generateSecret(with: resolver.session) }
                ),
                (
                    .invalidMultiFactorSession,
                    { _ = try await provider.verifyPhoneNumber(with: phone, multiFactorSession: session) }
                ),
                (
                    .missingMultiFactorSession,
                    { _ = try await provider.verifyPhoneNumber(with: phone, multiFactorSession: nil) }
                ),
            ]
            for (code, body) in refusals {
                let refusal = try await error(body)
                #expect(refusal.code == code, "\(refusal)")
            }
        }
    }

    /// As `error(of:)`, for closures that are expressions.
    private func error(_ body: () async throws -> Void) async throws -> AuthError {
        try await PosternAuthTests.error(of: body)
    }
}
