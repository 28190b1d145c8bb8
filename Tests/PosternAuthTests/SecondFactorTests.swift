import Base
import Messages
import PosternAuth
import PosternClient
import TestSupport
import Testing

/// Second factors, as an application uses them.
@Suite struct SecondFactorTests {
    private typealias Scene = SecondFactorScene

    @Test func `An authenticator app is enrolled, and finishes a sign-in`() async throws {
        try await Scene.run { scene in
            let (secret, recoveryCodes) = try await scene.addAuthenticator()
            #expect(recoveryCodes.count == 10 && Set(recoveryCodes).count == 10)
            #expect(scene.ada.multiFactor.recoveryCodeCount == 10)
            let factor = try #require(scene.ada.multiFactor.enrolledFactors.first as? TOTPMultiFactorInfo)
            #expect(factor.displayName == "phone" && factor.factorID == TOTPMultiFactorID)
            #expect(try await scene.ada.idTokenResult().signInSecondFactor == "totp")

            let auth = try scene.application.auth()
            let resolver = try await scene.resolver(auth)
            #expect(resolver.auth === auth && auth.currentUser == nil)
            #expect(resolver.hints.map(\.uid) == [factor.uid] && resolver.hints.first?.displayName == "phone")
            await expect(.invalidVerificationCode) {
                try await resolver.resolveSignIn(with: scene.assertion(factor, "000000"))
            }
            let right = scene.assertion(factor, try scene.code(secret))
            let result = try await resolver.resolveSignIn(with: right)
            #expect(auth.currentUser === result.user && result.user.uid == scene.ada.uid)
            #expect(!result.additionalUserInfo.isNewUser && result.additionalUserInfo.providerID == "password")
            #expect(try await result.user.idTokenResult(forcingRefresh: true).signInSecondFactor == "totp")
            await expect(.invalidMultiFactorSession) { try await resolver.resolveSignIn(with: right) }
        }
    }

    @Test func `A phone number is enrolled, and its code finishes a sign-in`() async throws {
        try await Scene.run { scene in
            try await scene.addPhone()
            let own = try #require(scene.ada.multiFactor.enrolledFactors.first as? PhoneMultiFactorInfo)
            #expect(own.phoneNumber == Scene.number && own.factorID == PhoneMultiFactorID)
            let auth = try scene.application.auth()
            let resolver = try await scene.resolver(auth)
            let hint = try #require(resolver.hints.first as? PhoneMultiFactorInfo)
            #expect(hint.phoneNumber.hasSuffix("0123") && hint.phoneNumber != Scene.number)
            let provider = PhoneAuthProvider.provider(auth: auth)
            let verificationID = try await provider.verifyPhoneNumber(
                with: hint, uiDelegate: nil, multiFactorSession: resolver.session)
            func resolve(_ code: String) async throws {
                let credential = provider.credential(withVerificationID: verificationID, verificationCode: code)
                try await resolver.resolveSignIn(with: PhoneMultiFactorGenerator.assertion(with: credential))
            }
            await expect(.invalidVerificationCode) { try await resolve("654321") }
            try await resolve("123456")
            #expect(try await auth.currentUser?.idTokenResult().signInSecondFactor == "phone")
        }
    }

    @Test func `A recovery code works once, and new ones void the old`() async throws {
        try await Scene.run { scene in
            let codes = try await scene.addAuthenticator().recoveryCodes
            func signIn(_ code: String) async throws -> PosternAuth.User {
                let auth = try scene.application.auth()
                let assertion = RecoveryCodeMultiFactorGenerator.assertionForSignIn(withRecoveryCode: code)
                return try await scene.resolver(auth).resolveSignIn(with: assertion).user
            }
            let user = try await signIn(codes[0].uppercased())
            #expect(user.multiFactor.recoveryCodeCount == 9)
            await expect(.invalidVerificationCode) { _ = try await signIn(codes[0]) }
            let renewed = try await user.multiFactor.renewRecoveryCodes()
            #expect(renewed.count == 10 && Set(renewed).isDisjoint(with: codes))
            #expect(user.multiFactor.recoveryCodeCount == 10)
            await expect(.invalidVerificationCode) { _ = try await signIn(codes[1]) }
            #expect(try await signIn(renewed[0]).multiFactor.recoveryCodeCount == 9)
        }
    }

    @Test func `Proving oneself again asks for a factor, and then a factor can be removed`() async throws {
        try await Scene.run { scene in
            let secret = try await scene.addAuthenticator().secret
            let factor = try #require(scene.ada.multiFactor.enrolledFactors.first)
            scene.application.server.clock.advance(by: .minutes(6))
            await expect(.requiresRecentLogin) { try await scene.ada.multiFactor.unenroll(with: factor) }
            let credential = EmailAuthProvider.credential(withEmail: Scene.email, password: password)
            let resolver = try await scene.resolver { try await scene.ada.reauthenticate(with: credential) }
            let events = Recording<IDTokenEvent.Change>()
            let listening = Task {
                for await event in scene.auth.idTokenEvents { events.append(event.change) }
            }
            defer { listening.cancel() }
            let result = try await resolver.resolveSignIn(with: scene.assertion(factor, try scene.code(secret)))
            #expect(result.user === scene.ada && resolver.auth === scene.auth)
            try await scene.ada.multiFactor.unenroll(withFactorUID: factor.uid)
            #expect(scene.ada.multiFactor.enrolledFactors.isEmpty && scene.ada.multiFactor.recoveryCodeCount == 0)
            try await until("the removal is told") {
                events.elements.contains { if case .tokenRefreshed(.secondFactorsChanged) = $0 { true } else { false } }
            }
            try await scene.application.auth().signIn(withEmail: Scene.email, password: password)
        }
    }

    @Test func `The factors are there again after a restart`() async throws {
        try await Scene.run { scene in
            let storage = InMemoryStorage()
            let secret = try await scene.addAuthenticator().secret
            let auth = try scene.application.auth(storage: storage)
            let resolver = try await scene.resolver(auth)
            let assertion = scene.assertion(try #require(resolver.hints.first), try scene.code(secret))
            try await resolver.resolveSignIn(with: assertion)
            let again = try #require(try scene.application.auth(storage: storage).currentUser)
            #expect(again.multiFactor.enrolledFactors.map(\.uid) == resolver.hints.map(\.uid))
            #expect(again.multiFactor.recoveryCodeCount == 10)
        }
    }

    @Test func `What an administrator changes is told to the application that listens`() async throws {
        try await Scene.run { scene in
            let listening = Task { for await _ in scene.auth.idTokenEvents {} }
            defer { listening.cancel() }
            try await until { scene.application.streamCount == 1 }
            let users = UsersClient(channel: scene.application.admin)
            let uid = Text(scene.ada.uid)
            _ = try await users.addSecondFactor(UsersAddSecondFactorRequest(uid: uid, phoneNumber: Text(Scene.number)))
            try await until { scene.ada.multiFactor.enrolledFactors.count == 1 }
            _ = try await users.removeSecondFactor(UsersRemoveSecondFactorRequest(uid: uid, all: true))
            try await until { scene.ada.multiFactor.enrolledFactors.isEmpty }
        }
    }

    @Test func `The mail about a new factor takes it back`() async throws {
        try await Scene.run { scene in
            try await scene.addAuthenticator()
            let auth = try scene.application.auth()
            let link = try await scene.application.mailedLink()
            let info = try await auth.checkActionCode(link)
            #expect(info.operation == .revertSecondFactorAddition && info.email == Scene.email)
            try await auth.applyActionCode(link)
            let user = try await auth.signIn(withEmail: Scene.email, password: password).user
            #expect(user.multiFactor.enrolledFactors.isEmpty && user.multiFactor.recoveryCodeCount == 0)
            await expect(.userTokenExpired) { try await scene.ada.reload() }
        }
    }

    private func expect(
        _ code: AuthErrorCode, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
    ) async {
        do {
            try await body()
            Issue.record("nothing was refused", sourceLocation: sourceLocation)
        } catch {
            #expect((error as? AuthError)?.code == code, "\(error)", sourceLocation: sourceLocation)
        }
    }
}
