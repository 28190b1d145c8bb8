import Base
import Messages
import PosternAuth
import PosternClient
import TestSupport
import Testing

/// Answers about second factors that get lost: each is asked for again, and nothing is done twice.
@Suite(.timeLimit(.minutes(2))) struct SecondFactorLossTests {
    private typealias Scene = SecondFactorScene

    private func proxy(_ scene: Scene, _ method: String) -> CuttingProxy {
        CuttingProxy(target: scene.application.server.port, methods: [method])
    }

    @Test func `A lost answer to the second factor still signs in`() async throws {
        try await Scene.run { scene in
            let secret = try await scene.addAuthenticator().secret
            let proxy = proxy(scene, "FinalizeMfaSignIn")
            let auth = try scene.application.auth(through: proxy.address)
            let resolver = try await scene.resolver(auth)
            let assertion = scene.assertion(try #require(resolver.hints.first), try scene.code(secret))
            proxy.cutNextAnswer(to: "FinalizeMfaSignIn")
            let user = try await resolver.resolveSignIn(with: assertion).user
            #expect(proxy.requestCount("FinalizeMfaSignIn") == 2)
            try await user.reload()
            #expect(try await user.sessions().count == 2)
            proxy.stop()
        }
    }

    @Test func `A lost answer to a repeated proof leaves the user signed in`() async throws {
        try await Scene.run { scene in
            let secret = try await scene.addAuthenticator().secret
            let proxy = proxy(scene, "FinalizeMfaSignIn")
            let auth = try scene.application.auth(through: proxy.address)
            let signIn = try await scene.resolver(auth)
            let factor = try #require(signIn.hints.first)
            let user = try await signIn.resolveSignIn(with: scene.assertion(factor, try scene.code(secret))).user
            scene.waitForNextCode()
            let credential = EmailAuthProvider.credential(withEmail: Scene.email, password: password)
            let resolver = try await scene.resolver { try await user.reauthenticate(with: credential) }
            proxy.cutNextAnswer(to: "FinalizeMfaSignIn")
            try await resolver.resolveSignIn(with: scene.assertion(factor, try scene.code(secret)))
            #expect(proxy.requestCount("FinalizeMfaSignIn") == 3)
            _ = try await user.idToken(forcingRefresh: true)
            #expect(auth.currentUser === user)
            proxy.stop()
        }
    }

    @Test func `A lost answer to an enrolment still brings recovery codes that work`() async throws {
        try await Scene.run { scene in
            let proxy = proxy(scene, "FinalizeMfaEnrollment")
            let auth = try scene.application.auth(through: proxy.address)
            let user = try await auth.signIn(withEmail: Scene.email, password: password).user
            let secret = try await TOTPMultiFactorGenerator.generateSecret(with: user.multiFactor.session())
            let assertion = TOTPMultiFactorGenerator.assertionForEnrollment(
                with: secret, oneTimePassword: try scene.code(secret))
            proxy.cutNextAnswer(to: "FinalizeMfaEnrollment")
            let codes = try await user.multiFactor.enroll(with: assertion).recoveryCodes
            #expect(proxy.requestCount("FinalizeMfaEnrollment") == 2)
            #expect(codes.count == 10 && user.multiFactor.enrolledFactors.count == 1)
            let recovery = RecoveryCodeMultiFactorGenerator.assertionForSignIn(
                withRecoveryCode: try #require(codes.last))
            try await scene.resolver(try scene.application.auth()).resolveSignIn(with: recovery)
            proxy.stop()
        }
    }
}
