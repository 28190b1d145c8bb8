import Base
import Messages
import PosternAuth
import PosternClient
import TestSupport
import Testing

/// A server where users may have second factors, and ada, who has a verified email and signs in with a password.
struct SecondFactorScene {
    let application: Application
    let auth: Auth
    let ada: PosternAuth.User

    static let email = "ada@example.com"
    static let number = "+14155550123"

    static func run(
        _ state: SecondFactorState = .enabled, _ body: (SecondFactorScene) async throws -> Void
    ) async throws {
        try await Application.run { application in
            let paths: [Text] = ["second_factor_state", "enable_phone_signin", "test_phone_numbers"]
            try await application.setTenant(paths) {
                $0.secondFactorState = state
                $0.enablePhoneSignin = true
                $0.testPhoneNumbers = [TestPhoneNumber(phoneNumber: Text(number), code: "123456")]
            }
            let users = UsersClient(channel: application.admin)
            let request = UsersCreateRequest(
                email: Text(email), emailVerified: true, password: Secret(password))
            let made = try #require(try await users.create(request).user)
            let auth = try application.auth()
            try await application.setTenant(["second_factor_state"]) { $0.secondFactorState = .enabled }
            let ada = try await auth.signIn(withEmail: email, password: password).user
            try await application.setTenant(["second_factor_state"]) { $0.secondFactorState = state }
            #expect(ada.uid == made.uid.string)
            try await body(SecondFactorScene(application: application, auth: auth, ada: ada))
        }
    }

    /// The code that oathtool makes from the secret, at the server's time.
    func code(_ secret: TOTPSecret) throws -> String {
        let output = "\(application.server.directory)/oathtool"
        let time = application.server.clock.clock.now().seconds
        let program = try ChildProcess(
            "oathtool", ["--totp", "--base32", "--now=@\(time)", secret.sharedSecretKey()], output: output)
        try #require(program.wait() == 0)
        return String(decoding: (readFile(output) ?? []).filter { $0 != 0x0A }, as: UTF8.self)
    }

    /// Advances the clock to the next code: each code is good once.
    func waitForNextCode() { application.server.clock.advance(by: .seconds(30)) }

    /// Adds an authenticator app to ada.
    @discardableResult
    func addAuthenticator() async throws -> (secret: TOTPSecret, recoveryCodes: [String]) {
        let secret = try await TOTPMultiFactorGenerator.generateSecret(with: ada.multiFactor.session())
        let assertion = TOTPMultiFactorGenerator.assertionForEnrollment(
            with: secret, oneTimePassword: try code(secret))
        let result = try await ada.multiFactor.enroll(with: assertion, displayName: "phone")
        waitForNextCode()
        return (secret, result.recoveryCodes)
    }

    /// Adds the phone number whose code is known.
    @discardableResult
    func addPhone() async throws -> MultiFactorEnrollmentResult {
        let provider = PhoneAuthProvider.provider(auth: auth)
        let verificationID = try await provider.verifyPhoneNumber(
            Self.number, uiDelegate: nil, multiFactorSession: ada.multiFactor.session())
        let credential = provider.credential(withVerificationID: verificationID, verificationCode: "123456")
        return try await ada.multiFactor.enroll(with: PhoneMultiFactorGenerator.assertion(with: credential))
    }

    /// The resolver of a sign-in on another device.
    func resolver(_ auth: Auth) async throws -> MultiFactorResolver {
        try await resolver { try await auth.signIn(withEmail: Self.email, password: password) }
    }

    /// The resolver in the error that `body` is refused with.
    func resolver(
        sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
    ) async throws -> MultiFactorResolver {
        let refusal = try await error(of: body, sourceLocation: sourceLocation)
        #expect(refusal.code == .secondFactorRequired, sourceLocation: sourceLocation)
        return try #require(refusal.multiFactorResolver, sourceLocation: sourceLocation)
    }

    func assertion(_ hint: any MultiFactorInfo, _ code: String) -> MultiFactorAssertion {
        TOTPMultiFactorGenerator.assertionForSignIn(withEnrollmentID: hint.uid, oneTimePassword: code)
    }
}
