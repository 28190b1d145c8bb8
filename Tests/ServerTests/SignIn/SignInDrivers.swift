import Base
import Identity
import Messages
import Rules
import TestSupport

// The drivers of the methods that were there first. A new method has its driver in its own test file.

private let wrongPassword: Text = "wrong horse"
private let nonsense = Secret([UInt8]("nonsense".utf8))

extension PasswordSignIn: SignInDriver {
    static var answerToNewcomer: String { "INVALID_LOGIN_CREDENTIALS" }
    static var answerToNewcomerWithoutSignUp: String { answerToNewcomer }

    static func signIn(_ client: IdentityClient, _ name: Text, _ variant: String) throws {
        _ = try client.signIn(email(name))
    }

    static func makeKnown(_ client: IdentityClient, _ name: Text, _ variant: String) throws {
        let _: UsersCreateResponse = try client.client.call(
            "postern.v1.Users/Create",
            UsersCreateRequest(email: email(name), password: Secret([UInt8]("correct horse".utf8))))
    }

    static func signInWrongly(_ client: IdentityClient, _ name: Text) throws {
        _ = try client.signIn(email(name), password: wrongPassword)
    }
}

extension PasswordSignUp: SignInDriver {
    static func signIn(_ client: IdentityClient, _ name: Text, _ variant: String) throws {
        _ = try client.signUp(email(name))
    }

    static func signInWrongly(_ client: IdentityClient, _ name: Text) throws {
        _ = try client.signUp(email(name), password: "weak")
    }
}

extension AnonymousSignUp: SignInDriver {
    static func signIn(_ client: IdentityClient, _ name: Text, _ variant: String) throws { _ = try client.signUp() }

    static func signInWrongly(_ client: IdentityClient, _ name: Text) throws {
        throw Failure(.ok, "", "There is no credential.")
    }
}

extension FederatedSignIn: SignInDriver {
    static var variants: [String] { ["trusted", "untrusted"] }

    static func signIn(_ client: IdentityClient, _ name: Text, _ variant: String) throws {
        let identity: FederatedIdentity =
            variant == "trusted" ? .google(name, email: email(name)) : .github(name, email: email(name))
        _ = try client.signIn(identity)
    }

    static func signInWrongly(_ client: IdentityClient, _ name: Text) throws {
        let _: AccountsSignInWithIdpResponse = try client.client.call(
            "postern.v1.Accounts/SignInWithIdp",
            AccountsSignInWithIdpRequest(credential: IdpCredential(credential: .pendingToken(nonsense))))
    }
}

extension EmailLinkSignIn: SignInDriver {
    /// The server sends no link to an unknown address, so there is nothing to refuse.
    static var answerToNewcomerWithoutSignUp: String { "no mail" }

    static func signIn(_ client: IdentityClient, _ name: Text, _ variant: String) throws {
        try client.sendOob(.emailSignin, email: email(name))
        guard let mail = try client.mails().first, mail.message.to == email(name) else {
            throw Failure(.notFound, "no mail", "")
        }
        _ = try client.signIn(email(name), link: mail.code)
    }

    static func signInWrongly(_ client: IdentityClient, _ name: Text) throws {
        _ = try client.signIn(email(name), link: nonsense)
    }
}

extension CustomTokenSignIn: SignInDriver {
    static func signIn(_ client: IdentityClient, _ name: Text, _ variant: String) throws {
        _ = try client.signIn(customTokenFor: name)
    }

    static func signInWrongly(_ client: IdentityClient, _ name: Text) throws {
        let _: AccountsSignInWithCustomTokenResponse = try client.client.call(
            "postern.v1.Accounts/SignInWithCustomToken", AccountsSignInWithCustomTokenRequest(token: nonsense))
    }
}
