import Base
import Identity
import Messages
import Store
import TestSupport
import Testing

/// A write that throws after a change has the writes of others in its batch run again. So a call is refused before its
/// first change.
@Suite struct RefusedChangeTests {
    private static func expectNoRerun(
        _ client: IdentityClient, _ reason: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () throws -> Void
    ) throws {
        let store = client.server.project.store
        let before = try store.statistics().reruns
        expectRefusal(reason, sourceLocation: sourceLocation, body)
        #expect(try store.statistics().reruns == before, sourceLocation: sourceLocation)
    }

    @Test func `A factor that is gone is not taken back`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let code = try EmailRecoveryTests.newestCode(client, .revertSecondFactorAddition)
            let _: UsersRemoveSecondFactorResponse = try client.client.call(
                "postern.v1.Users/RemoveSecondFactor",
                UsersRemoveSecondFactorRequest(uid: user.uid, factorID: user.factorID))
            try Self.expectNoRerun(client, "INVALID_OOB_CODE") { _ = try client.applyOob(code) }
        }
    }

    @Test func `A password is not reset by a code that went to a former email`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let idToken = try #require(try client.signUp("ada@example.com").tokens).idToken
            try client.sendOob(.passwordReset, email: "ada@example.com")
            let reset = try EmailRecoveryTests.newestCode(client, .passwordReset)
            try client.sendOob(.verifyAndChangeEmail, newEmail: "new@example.com", idToken: idToken)
            _ = try client.applyOob(try EmailRecoveryTests.newestCode(client, .verifyAndChangeEmail))
            try Self.expectNoRerun(client, "INVALID_OOB_CODE") { _ = try client.resetPassword(reset, "another horse") }
            _ = try client.signIn("new@example.com")
        }
    }

    @Test func `A link to another address is not linked`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_link_signin"]) { $0.enableEmailLinkSignin = true }
            let idToken = try #require(try client.signUp("ada@example.com").tokens).idToken
            _ = try client.signUp("bob@example.com")
            let cases: [(Text, String)] = [
                ("free@example.com", "INVALID_EMAIL"), ("bob@example.com", "CREDENTIAL_ALREADY_IN_USE"),
            ]
            for (email, reason) in cases {
                try client.sendOob(.emailSignin, email: email)
                let code = try EmailRecoveryTests.newestCode(client, .emailSignin)
                try Self.expectNoRerun(client, reason) {
                    _ = try client.signIn(email, link: code, linkingTo: idToken)
                }
            }
        }
    }

    @Test func `An email is not changed to a taken one`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setTenant(["enable_email_privacy"]) { $0.enableEmailPrivacy = false }
            let tokens = try EmailRecoveryTests.verifiedAccount(client, "ada@example.com")
            _ = try client.signUp("bob@example.com")
            try Self.expectNoRerun(client, "EMAIL_EXISTS") {
                _ = try EmailRecoveryTests.move(client, to: "bob@example.com", tokens.idToken)
            }
            #expect(try client.lookup(tokens.idToken).email == "ada@example.com")
        }
    }

    @Test func `A factor that the user does not have finishes no sign-in`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let pending = try client.pending(user)
            for _ in 0..<6 {
                try Self.expectNoRerun(client, "MFA_ENROLLMENT_NOT_FOUND") {
                    _ = try client.finish(pending, "nobody", .totpCode(user.code(server)))
                }
            }
            _ = try client.finish(pending, user)
        }
    }
}
