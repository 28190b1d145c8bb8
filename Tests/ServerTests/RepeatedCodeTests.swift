import Base
import Messages
import TestSupport
import Testing
import Wire

/// A sign-in by a code whose answer was lost, asked for again with the same idempotency-key. The first attempt used the
/// code up.
@Suite struct RepeatedCodeTests {
    private static let email: Text = "ada@example.com"
    private static let number: Text = "+14155550155"

    private struct Answer: Equatable, Sendable {
        let uid: Text?
        let refreshToken: Text?
        let isNewUser: Bool

        /// A repeat never says that the user is new.
        static func == (one: Answer, other: Answer) -> Bool {
            one.uid == other.uid && one.refreshToken == other.refreshToken
        }
    }

    enum Kind: CaseIterable { case link, phone }

    /// A request that can be sent again and again.
    private enum SignIn: Sendable {
        case link(AccountsSignInWithEmailLinkRequest)
        case phone(AccountsSignInWithPhoneNumberRequest)

        static func made(_ kind: Kind, _ client: IdentityClient) throws -> SignIn {
            switch kind {
            case .link:
                let email = RepeatedCodeTests.email
                try client.sendOob(.emailSignin, email: email)
                return .link(AccountsSignInWithEmailLinkRequest(email: email, oobCode: try client.mails()[0].code))
            case .phone:
                let code = try client.code(to: RepeatedCodeTests.number)
                return .phone(AccountsSignInWithPhoneNumberRequest(sessionInfo: code.sessionInfo, code: code.code))
            }
        }

        var reasonWithoutKey: String {
            switch self {
            case .link: "INVALID_OOB_CODE"
            case .phone: "INVALID_SESSION_INFO"
            }
        }

        /// `key`: the idempotency-key; empty for none.
        func send(_ server: TestServer, key: Text) throws -> Answer {
            let client = try IdentityClient(server).client
            let metadata = key.isEmpty ? [] : [OutgoingMetadata.Entry(key: "idempotency-key", value: key)]
            switch self {
            case .link(let request):
                let done: AccountsSignInWithEmailLinkResponse = try client.call(
                    "postern.v1.Accounts/SignInWithEmailLink", request, metadata: metadata)
                return Answer(
                    uid: done.user?.uid, refreshToken: done.tokens?.refreshToken, isNewUser: done.isNewUser)
            case .phone(let request):
                let done: AccountsSignInWithPhoneNumberResponse = try client.call(
                    "postern.v1.Accounts/SignInWithPhoneNumber", request, metadata: metadata)
                return Answer(
                    uid: done.user?.uid, refreshToken: done.tokens?.refreshToken, isNewUser: done.isNewUser)
            }
        }
    }

    @Test(arguments: Kind.allCases)
    func `The repeat of a sign-in by a code gets its answer`(_ kind: Kind) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            for isNew in [true, false] {
                let key: Text = isNew ? "k1" : "k2"
                let signIn = try SignIn.made(kind, client)
                let first = try signIn.send(server, key: key)
                // By then the code would have expired.
                server.clock.advance(by: .minutes(30))
                let again = try signIn.send(server, key: key)
                #expect(again == first && first.uid?.isEmpty == false)
                #expect(first.isNewUser == isNew && !again.isNewUser)
                expectRefusal(signIn.reasonWithoutKey) { _ = try signIn.send(server, key: .empty) }
                expectRefusal(signIn.reasonWithoutKey) { _ = try signIn.send(server, key: "other") }
                _ = try client.refresh(again.refreshToken ?? .empty)
                expectRefusal("ALREADY_DONE") { _ = try signIn.send(server, key: key) }
                let other = try SignIn.made(kind, client)
                expectRefusal("IDEMPOTENCY_KEY_REUSED") { _ = try other.send(server, key: key) }
            }
            let listed: UsersListResponse = try client.client.call("postern.v1.Users/List", UsersListRequest())
            #expect(listed.users.count == 1)
        }
    }

    @Test(arguments: Kind.allCases)
    func `Of two equal sign-ins at once both get the first one's answer`(_ kind: Kind) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            for round in 0..<4 {
                let signIn = try SignIn.made(kind, client)
                let answers = try await atOnce(2) { _ in try signIn.send(server, key: Text("round-\(round)")) }
                #expect(try answers[0].get() == answers[1].get())
            }
        }
    }

    @Test(arguments: Kind.allCases)
    func `The repeat of a sign-in by a switched-off method is refused`(_ kind: Kind) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            let signIn = try SignIn.made(kind, client)
            _ = try signIn.send(server, key: "k1")
            try client.setTenant(["enable_email_link_signin", "enable_phone_signin"]) { _ in }
            expectRefusal("OPERATION_NOT_ALLOWED") { _ = try signIn.send(server, key: "k1") }
        }
    }

    /// What an admin does to the user after the first answer.
    enum Ending: CaseIterable { case disabling, revoking }

    @Test(arguments: Kind.allCases, Ending.allCases)
    func `The repeat of a sign-in whose session was ended is refused`(_ kind: Kind, _ ending: Ending) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            let signIn = try SignIn.made(kind, client)
            let uid = try #require(try signIn.send(server, key: "k1").uid)
            switch ending {
            case .disabling: try client.update(uid, ["disabled"]) { $0.disabled = true }
            case .revoking:
                let _: UsersRevokeTokensResponse = try client.client.call(
                    "postern.v1.Users/RevokeTokens", UsersRevokeTokensRequest(uid: uid))
            }
            expectRefusal("ALREADY_DONE") { _ = try signIn.send(server, key: "k1") }
            if ending == .disabling { try client.update(uid, ["disabled"]) { $0.disabled = false } }
            expectRefusal("ALREADY_DONE") { _ = try signIn.send(server, key: "k1") }
        }
    }

    /// Somebody knows the idempotency-key and the session_info, and guesses the code.
    @Test func `A used code is not guessed by repeating`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            let code = try client.code(to: Self.number)
            func signIn(_ code: IdentityClient.PhoneCode) throws {
                let request = AccountsSignInWithPhoneNumberRequest(sessionInfo: code.sessionInfo, code: code.code)
                _ = try SignIn.phone(request).send(server, key: "k1")
            }
            try signIn(code)
            for distance in 1...3 {
                expectRefusal("IDEMPOTENCY_KEY_REUSED") { try signIn(code.wrong(distance)) }
            }
        }
    }

    @Test func `The repeat of a sign-in by a temporary proof gets its answer, also when the proof has ended`()
        async throws
    {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            _ = try client.signIn(phone: Self.number)
            let guest = try #require(try client.signUp().tokens).idToken
            let code = try client.code(to: Self.number)
            let refused = failure { _ = try client.signIn(code, linkingTo: guest) }
            let proof = Secret(try #require(refused.metadata("temporary_proof")))
            let signIn = SignIn.phone(
                AccountsSignInWithPhoneNumberRequest(temporaryProof: proof, phoneNumber: Self.number))
            let first = try signIn.send(server, key: "k1")
            server.clock.advance(by: .minutes(30))
            let again = try signIn.send(server, key: "k1")
            #expect(again == first)
            expectRefusal("INVALID_TEMPORARY_PROOF") { _ = try signIn.send(server, key: "other") }
        }
    }

    @Test func `The repeat of a sign-in that waits gets the same pending credential`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.allowEveryMethod()
            try client.setFactors(.enabled)
            let user = try client.appUser(Self.email)
            let signIn = try SignIn.made(.link, client)
            func pending() throws -> Secret { try client.pending { _ = try signIn.send(server, key: "k1") } }
            let first = try pending()
            let again = try pending()
            #expect(again == first)
            _ = try client.finish(again, user)
            expectRefusal("ALREADY_DONE") { _ = try signIn.send(server, key: "k1") }
        }
    }
}
