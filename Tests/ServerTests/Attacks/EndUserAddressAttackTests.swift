import Base
import Messages
import TestSupport
import Testing

/// What applications may say end users' addresses are.
@Suite struct EndUserAddressAttackTests {
    private typealias Ask = @Sendable (RawClient, Text) throws -> Void

    private static func ask<Answer: Message>(
        _ method: String, returning: Answer.Type, _ request: @escaping @Sendable (Text) -> some Message
    ) -> Ask {
        { client, address in let _: Answer = try client.call("postern.v1.Accounts/\(method)", request(address)) }
    }

    /// A call of every method that takes an address. Nothing else is right about most of them.
    private static let calls: [(String, Ask)] = [
        ("SignUp", ask("SignUp", returning: AccountsSignUpResponse.self) { AccountsSignUpRequest(endUserIP: $0) }),
        (
            "SignUp, linking",
            ask("SignUp", returning: AccountsSignUpResponse.self) { AccountsSignUpRequest(endUserIP: $0, idToken: "x") }
        ),
        (
            "SignInWithPassword",
            ask("SignInWithPassword", returning: AccountsSignInWithPasswordResponse.self) {
                AccountsSignInWithPasswordRequest(endUserIP: $0)
            }
        ),
        (
            "SignInWithIdp",
            ask("SignInWithIdp", returning: AccountsSignInWithIdpResponse.self) {
                AccountsSignInWithIdpRequest(endUserIP: $0)
            }
        ),
        (
            "SignInWithIdp, linking",
            ask("SignInWithIdp", returning: AccountsSignInWithIdpResponse.self) {
                AccountsSignInWithIdpRequest(idToken: "x", endUserIP: $0)
            }
        ),
        (
            "SignInWithEmailLink",
            ask("SignInWithEmailLink", returning: AccountsSignInWithEmailLinkResponse.self) {
                AccountsSignInWithEmailLinkRequest(endUserIP: $0)
            }
        ),
        (
            "SendVerificationCode",
            ask("SendVerificationCode", returning: AccountsSendVerificationCodeResponse.self) {
                AccountsSendVerificationCodeRequest(endUserIP: $0)
            }
        ),
        (
            "SignInWithPhoneNumber",
            ask("SignInWithPhoneNumber", returning: AccountsSignInWithPhoneNumberResponse.self) {
                AccountsSignInWithPhoneNumberRequest(endUserIP: $0)
            }
        ),
        (
            "SendOobCode",
            ask("SendOobCode", returning: AccountsSendOobCodeResponse.self) {
                AccountsSendOobCodeRequest(endUserIP: $0)
            }
        ),
        (
            "CreateAuthUri",
            ask("CreateAuthUri", returning: AccountsCreateAuthUriResponse.self) {
                AccountsCreateAuthUriRequest(endUserIP: $0)
            }
        ),
        (
            "Reauthenticate",
            ask("Reauthenticate", returning: AccountsReauthenticateResponse.self) {
                AccountsReauthenticateRequest(endUserIP: $0)
            }
        ),
        (
            "SignInWithCustomToken",
            ask("SignInWithCustomToken", returning: AccountsSignInWithCustomTokenResponse.self) {
                AccountsSignInWithCustomTokenRequest(endUserIP: $0)
            }
        ),
        ("Update", ask("Update", returning: AccountsUpdateResponse.self) { AccountsUpdateRequest(endUserIP: $0) }),
    ]

    private static let bad: [Text] = [
        Text(String(repeating: "1", count: 1 << 20)), Text(String(repeating: "::", count: 23)), "fe80::1%eth0",
        "192.0.2", "192.0.2.1 ", "192.0.2.1:80", "localhost", "0x7f000001",
    ]

    /// 13 calls with 8 texts each.
    @Test func `What is no address is refused by every method that takes one, before anything else`() async throws {
        try await withServer { server in
            let guesser = try Guesser(server)
            let untrusted = try Guesser(server, isTrusted: false)
            // A connection that has shown its credential takes longer frames.
            for someone in [guesser, untrusted] { _ = someone.tryPassword("x", of: "eve@example.com") }
            for (name, call) in Self.calls {
                for address in Self.bad {
                    #expect(failure { try call(guesser.client, address) }.reason == "INVALID_END_USER_IP", "\(name)")
                    // Of a credential that is not believed it is ignored, and bounded all the same.
                    let reason = failure { try call(untrusted.client, address) }.reason
                    #expect((reason == "INVALID_END_USER_IP") == (address.byteCount > 45), "\(name): \(reason)")
                }
            }
        }
    }

    /// The list above is whole: the protocol has no other request with an address.
    @Test func `Every request with an address is tried`() {
        let published = PublishedMethod.all.filter { $0.field(named: "end_user_ip") != nil }.map(\.fullName)
        let tried = Set(Self.calls.map { "postern.v1.Accounts/\($0.0.split(separator: ",")[0])" })
        #expect(Set(published) == tried)
    }

    @Test func `A session shows its address as everybody writes it`() async throws {
        try await withServer { server in
            _ = try IdentityClient(server).signUp("ada@example.com")
            let guesser = try Guesser(server)
            for (written, stored) in [
                ("::FFFF:192.0.2.7", "192.0.2.7"), ("2001:0DB8:0:0::0007", "2001:db8::7"),
            ] as [(Text, Text)] {
                let signedIn = try guesser.signIn("ada@example.com", from: written)
                let listed: SessionsListResponse = try guesser.client.call(
                    "postern.v1.Sessions/List", SessionsListRequest(idToken: signedIn.tokens?.idToken ?? .empty))
                #expect(listed.sessions.first { $0.current }?.endUserIP == stored)
            }
        }
    }
}
