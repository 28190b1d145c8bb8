import Base
import Messages
import PosternClient
import TestSupport
import Testing

@testable import PosternAuth

/// What an error about a missing second factor carries.
@Suite struct SecondFactorErrorTests {
    /// An `Auth` that calls no server.
    private static func auth() throws -> Auth {
        try Auth(configuration: .init(address: "127.0.0.1:1", credentials: .none))
    }

    private static func refusal(_ reason: Reason, _ metadata: [Failure.Entry]) throws -> AuthError {
        let auth = try auth()
        let failure = Failure(.failedPrecondition, reason.name, "", metadata: metadata)
        let refused = RefusedSignIn(backend: auth.backend, auth: auth, providerID: "password") { _ in
            throw AuthError.noCurrentUser
        }
        return AuthError(failure).withPendingSignIn(refused)
    }

    @Test func `The hints are read, and those of kinds that are not known are left out`() throws {
        let hints = """
            [{"factorId":"f1","kind":"phone","displayName":"work","phoneNumber":"+*******0123",
            "enrolledAtMicros":5000000}, {"factorId":"f2","kind":"totp"}, {"factorId":"f3","kind":"face"},
            {"kind":"totp"}, 7]
            """
        let error = try Self.refusal(
            .secondFactorRequired, [.init("pending_credential", "p"), .init("second_factors", hints)])
        #expect(error.code == .secondFactorRequired && error.multiFactorEnrollment == nil)
        let resolver = try #require(error.multiFactorResolver)
        #expect(resolver.hints.map(\.uid) == ["f1", "f2"])
        #expect(
            resolver.hints[0] as? PhoneMultiFactorInfo
                == PhoneMultiFactorInfo(
                    uid: "f1", displayName: "work", enrollmentDate: Timestamp(seconds: 5), phoneNumber: "+*******0123"))
        #expect(resolver.hints[1] is TOTPMultiFactorInfo && resolver.hints[1].displayName == nil)
    }

    @Test(arguments: ["", "{", "{}", "[[]]"])
    func `Without readable hints a recovery code still finishes the sign-in`(hints: String) throws {
        let error = try Self.refusal(
            .secondFactorRequired, [.init("pending_credential", "p"), .init("second_factors", hints)])
        #expect(error.multiFactorResolver?.hints.isEmpty == true)
    }

    @Test func `An enrolment has its credential, and no error has a way on that the server did not give`() throws {
        let required = try Self.refusal(.secondFactorEnrollmentRequired, [.init("enrollment_credential", "e")])
        #expect(required.multiFactorEnrollment != nil && required.multiFactorResolver == nil)
        for reason in [Reason.secondFactorRequired, .secondFactorEnrollmentRequired, .invalidLoginCredentials] {
            let error = try Self.refusal(reason, [])
            #expect(error.multiFactorEnrollment == nil && error.multiFactorResolver == nil)
        }
    }

    @Test func `Nothing prints its secret`() throws {
        let error = try Self.refusal(
            .secondFactorRequired, [.init("pending_credential", "s3cret"), .init("second_factors", "[]")])
        let assertion = TOTPMultiFactorGenerator.assertionForSignIn(withEnrollmentID: "f", oneTimePassword: "s3cret")
        let recovery = RecoveryCodeMultiFactorGenerator.assertionForSignIn(withRecoveryCode: "s3cret")
        let secret = try TOTPSecret(
            AccountsStartMfaEnrollmentResponse(totp: TotpSecret(sharedSecret: Secret("s3cret"), uri: Secret("s3cret"))))
        let texts = ["\(error)", "\(assertion)", "\(recovery)", "\(secret)", String(reflecting: assertion.kind)]
        #expect(texts.allSatisfy { !$0.contains("s3cret") }, "\(texts)")
    }

    @Test func `The URL of a secret is percent-encoded`() throws {
        let totp = TotpSecret(
            sharedSecret: Secret("ABCD"), uri: Secret("otpauth://totp/x"), codeLength: 6, periodSeconds: 30,
            algorithm: "SHA1")
        let secret = try TOTPSecret(AccountsStartMfaEnrollmentResponse(totp: totp))
        #expect(secret.sharedSecretKey() == "ABCD" && secret.qrCodeURL == "otpauth://totp/x")
        #expect(
            secret.generateQRCodeURL(withAccountName: "ada+1@example.com", issuer: "Müller & Co")
                == "otpauth://totp/M%C3%BCller%20%26%20Co:ada%2B1%40example.com?secret=ABCD"
                + "&issuer=M%C3%BCller%20%26%20Co&algorithm=SHA1&digits=6&period=30")
    }
}
