import Base
import Messages
import TestSupport
import Testing

/// What the published methods say about ways around the second factor. A new method is in these tables by itself.
@Suite struct SecondFactorMethodTests {
    /// Methods that ask for a factor. Their rows are in `SecondFactorTableTests`.
    private static let asking: Set<String> = [
        "SignUp", "SignInWithPassword", "SignInWithIdp", "SignInWithEmailLink", "SignInWithPhoneNumber",
        "SignInWithCustomToken", "Reauthenticate",
    ]
    /// Methods that go on with a session that has shown what it had to show.
    private static let goingOn: Set<String> = ["Update", "Unlink", "WithdrawMfaEnrollment"]
    /// Methods that judge a factor.
    private static let judging: Set<String> = ["FinalizeMfaEnrollment", "FinalizeMfaSignIn"]

    @Test func `Every method that answers tokens is known to ask, to judge, or to need a session`() {
        let answering = PublishedMethod.all.filter { method in
            method.responseFields.contains { $0.typeName == ".postern.v1.TokenPair" }
        }
        let known = Self.asking.union(Self.goingOn).union(Self.judging)
        #expect(
            Set(answering.map(\.fullName))
                == Set(known.map { "postern.v1.Accounts/\($0)" }).union(["postern.v1.Tokens/Refresh"]))
    }

    /// The methods in which the credential of a user who has to enroll a factor stands in the place of an ID token.
    private static let enrolling: Set<String> = [
        "postern.v1.Accounts/StartMfaEnrollment", "postern.v1.Accounts/FinalizeMfaEnrollment",
        "postern.v1.Accounts/Lookup", "postern.v1.Accounts/SendOobCode", "postern.v1.Sessions/SignOut",
    ]

    @Test(arguments: [SecondFactorState.enabled, .mandatory])
    func `The credential of a sign-in that waits is no token`(_ state: SecondFactorState) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setFactors(.enabled)
            let user = try client.appUser()
            try client.setFactors(state)
            let refused = failure {
                if state == .mandatory {
                    _ = try client.signUp("eve@example.com")
                } else {
                    _ = try client.signIn(user.email)
                }
            }
            let name = state == .mandatory ? "enrollment_credential" : "pending_credential"
            let credential = Text(try #require(refused.metadata(name)))
            var count = 0
            for method in PublishedMethod.all where state == .enabled || !Self.enrolling.contains(method.fullName) {
                for field in method.requestFields where DeadTokenAnswerTests.tokenFields.contains(field.name) {
                    var request = DeadTokenAnswerTests.rest(of: method, client)
                    request.append(field.number, credential)
                    let found = failure { try Self.call(method, request, server) }.reason
                    let comment: Comment = "\(method.fullName) \(field.name)"
                    #expect(
                        ["INVALID_ID_TOKEN", "INVALID_REFRESH_TOKEN", "INVALID_SESSION_COOKIE"].contains(found), comment
                    )
                    count += 1
                }
            }
            #expect(count >= 15)
        }
    }

    private static func call(_ method: PublishedMethod, _ request: EncodedMessage, _ server: TestServer) throws {
        if method.isResponseStreaming {
            _ = try RawStream<EncodedMessage>(server, method.fullName, request).next()
        } else {
            let _: EncodedMessage = try server.connect().call(method.fullName, request)
        }
    }
}
