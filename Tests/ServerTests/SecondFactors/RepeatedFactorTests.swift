import Base
import Identity
import Messages
import TestSupport
import Testing
import Wire

/// The end of a sign-in that is sent twice at once, as a client does that gave up waiting for the first answer.
@Suite struct RepeatedFactorTests {
    private static let number: Text = "+14155550177"

    /// The answers to two requests of one idempotency key that come in one piece.
    private static func twice<Response: Message>(
        _ server: TestServer, _ method: String, _ request: some Message, key: Text
    ) throws -> [Result<Response, any Error>] {
        let client = try RawClient(port: server.port)
        client.apiKey = server.adminKey
        let metadata = [OutgoingMetadata.Entry(key: "idempotency-key", value: key)]
        let requests = (0..<2).flatMap { _ in
            client.request(method, request, stream: client.nextStream(), metadata: metadata)
        }
        try client.send(requests)
        return try (0..<2).map { _ in
            let frame = try client.readFrame()
            return Result { try RawClient.response(frame) }
        }
    }

    private static func expectOneSession(
        _ answers: [Result<AccountsFinalizeMfaSignInResponse, any Error>], _ uid: Text
    ) throws {
        let tokens = try answers.map { try #require(try $0.get().tokens) }
        #expect(tokens[0].refreshToken == tokens[1].refreshToken)
        #expect(try answers.allSatisfy { try $0.get().user?.uid == uid })
    }

    @Test func `Both get the first one's answer, with a code of an app`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            for round in 0..<10 {
                server.clock.advance(by: .minutes(1))
                let pending = try client.pending(user)
                try Self.expectOneSession(
                    try Self.twice(
                        server, "postern.v1.Accounts/FinalizeMfaSignIn",
                        AccountsFinalizeMfaSignInRequest(
                            pendingCredential: pending, factorID: user.factorID, proof: .totpCode(user.code(server))),
                        key: Text("round-\(round)")), user.uid)
            }
            #expect(server.project.secondFactorSignIns.counts.outcomes(of: .totp).wrong.value == 0)
        }
    }

    @Test func `Both get the first one's answer, with a code by SMS`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let email: Text = "ada@example.com"
            let enrolled = try client.enrollPhone(Self.number, try client.verifiedUser(email).idToken)
            let uid = try client.find(email).uid
            for round in 0..<3 {
                let pending = try client.pending { _ = try client.signIn(email) }
                let sent = try client.startSMS(pending, enrolled.factorID)
                let code = PhoneCredential(
                    sessionInfo: sent.sessionInfo, code: try client.newestCode(to: Self.number))
                try Self.expectOneSession(
                    try Self.twice(
                        server, "postern.v1.Accounts/FinalizeMfaSignIn",
                        AccountsFinalizeMfaSignInRequest(
                            pendingCredential: pending, factorID: enrolled.factorID, proof: .phone(code)),
                        key: Text("round-\(round)")), uid)
            }
        }
    }

    /// The recovery codes are given only once.
    @Test func `Both get the tokens of an enrolment that ends a sign-in`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            _ = try client.verifiedUser("ada@example.com")
            try client.setFactors(.mandatory)
            let refused = failure { _ = try client.signIn("ada@example.com") }
            let credential = Text(try #require(refused.metadata("enrollment_credential")))
            let started = try client.startApp(credential)
            let app = AppUser(
                email: "ada@example.com", uid: "", factorID: "", secret: IdentityClient.secret(started.totp),
                recoveryCodes: [], tokens: TokenPair())
            let answers: [Result<AccountsFinalizeMfaEnrollmentResponse, any Error>] = try Self.twice(
                server, "postern.v1.Accounts/FinalizeMfaEnrollment",
                AccountsFinalizeMfaEnrollmentRequest(
                    idToken: credential, sessionInfo: started.sessionInfo, code: app.code(server), displayName: "app"),
                key: "once")
            let tokens = try answers.map { try #require(try $0.get().tokens) }
            #expect(tokens[0].refreshToken == tokens[1].refreshToken)
            #expect(try answers.map { try $0.get().recoveryCodes.count }.sorted() == [0, 10])
        }
    }

    @Test func `Another request with the same key is refused`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let user = try client.appUser()
            let (first, second) = (try client.pending(user), try client.pending(user))
            let code = AccountsFinalizeMfaSignInRequest.Proof.totpCode(user.code(server))
            _ = try client.finish(first, user.factorID, code, key: "k")
            expectRefusal("IDEMPOTENCY_KEY_REUSED") {
                _ = try client.finish(second, user.factorID, code, key: "k")
            }
        }
    }
}
