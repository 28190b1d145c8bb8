import Base
import Messages
import PosternAuth
import PosternClient
import TestSupport
import Testing

/// Phone numbers, as an application uses them.
@Suite struct PhoneTests {
    private static let number = "+14155550123"

    /// The code of the newest SMS.
    private static func code(_ application: Application) async throws -> String {
        let outbox = OutboxClient(channel: application.admin)
        let newest = try #require(try await outbox.list(OutboxListRequest()).messages.first)
        return try #require(try await outbox.get(OutboxGetRequest(messageID: newest.messageID)).contents).code.string
    }

    static func credential(
        _ auth: Auth, _ application: Application, number: String = number
    ) async throws -> PhoneAuthCredential {
        application.server.clock.advance(by: .milliseconds(1))
        let provider = PhoneAuthProvider.provider(auth: auth)
        let verificationID = try await provider.verifyPhoneNumber(number, uiDelegate: nil)
        return provider.credential(
            withVerificationID: verificationID, verificationCode: try await code(application))
    }

    private static func run(_ body: (Application) async throws -> Void) async throws {
        try await Application.run { application in
            try await application.setTenant(["enable_phone_signin"]) { $0.enablePhoneSignin = true }
            try await body(application)
        }
    }

    @Test func `A code signs in, and the user has the number`() async throws {
        try await Self.run { application in
            let auth = try application.auth()
            let result = try await auth.signIn(with: try await Self.credential(auth, application))
            #expect(result.additionalUserInfo.isNewUser && result.additionalUserInfo.providerID == "phone")
            #expect(auth.currentUser?.phoneNumber == Self.number && !result.user.isAnonymous)
            #expect(try await result.user.idTokenResult().signInProvider == "phone")
            let again = try await auth.signIn(with: try await Self.credential(auth, application))
            #expect(!again.additionalUserInfo.isNewUser && again.user.uid == result.user.uid)
        }
    }

    @Test func `An anonymous user adds a number, and changes it`() async throws {
        try await Self.run { application in
            let auth = try application.auth()
            let user = try await auth.signInAnonymously().user
            try await user.link(with: try await Self.credential(auth, application))
            #expect(!user.isAnonymous && user.phoneNumber == Self.number)
            try await user.reauthenticate(with: try await Self.credential(auth, application))
            try await user.updatePhoneNumber(
                try await Self.credential(auth, application, number: "+4915112345678"))
            #expect(user.phoneNumber == "+4915112345678")
        }
    }

    @Test func `A number of another account brings a credential that signs in to it`() async throws {
        try await Self.run { application in
            let owner = try application.auth()
            let uid = try await owner.signIn(with: try await Self.credential(owner, application)).user.uid
            let auth = try application.auth()
            let guest = try await auth.signInAnonymously().user
            do {
                try await guest.link(with: try await Self.credential(auth, application))
                Issue.record("the number was linked")
            } catch let error as AuthError {
                #expect(error.code == .credentialAlreadyInUse)
                let updated = try #require(error.updatedCredential)
                #expect(updated.provider == "phone")
                #expect(try await auth.signIn(with: updated).user.uid == uid)
            }
        }
    }

    @Test func `Refusals have FirebaseAuth's codes`() async throws {
        try await Self.run { application in
            let auth = try application.auth()
            let provider = PhoneAuthProvider.provider(auth: auth)
            await Self.expect(.missingPhoneNumber) { _ = try await provider.verifyPhoneNumber("") }
            await Self.expect(.invalidPhoneNumber) { _ = try await provider.verifyPhoneNumber("0149 1234") }
            let id = try await provider.verifyPhoneNumber(Self.number)
            func signIn(_ id: String, _ code: String) async throws {
                try await auth.signIn(
                    with: provider.credential(withVerificationID: id, verificationCode: code))
            }
            await Self.expect(.missingVerificationID) { try await signIn("", "123456") }
            await Self.expect(.missingVerificationCode) { try await signIn(id, "") }
            await Self.expect(.invalidVerificationID) { try await signIn("nonsense", "123456") }
            let wrong = try await Self.code(application) == "000000" ? "000001" : "000000"
            for _ in 0..<5 { await Self.expect(.invalidVerificationCode) { try await signIn(id, wrong) } }
            await Self.expect(.sessionExpired) { try await signIn(id, wrong) }
            try await application.setTenant(["blocked_sms_regions"]) { $0.blockedSMSRegions = ["US"] }
            await Self.expect(.operationNotAllowed) { _ = try await provider.verifyPhoneNumber(Self.number) }
        }
    }

    private static func expect(
        _ code: AuthErrorCode, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
    ) async {
        do {
            try await body()
            Issue.record("nothing was refused", sourceLocation: sourceLocation)
        } catch {
            #expect((error as? AuthError)?.code == code, sourceLocation: sourceLocation)
        }
    }
}
