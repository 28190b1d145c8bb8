import Base
import Identity
import Messages
import TestSupport
import Testing

/// How the tests sign in by a method, through the server's calls. The tables in `SignInTableTests` and `ToggleTests` go
/// through every registered method that has a driver; one test names those that have none.
protocol SignInDriver: SignInMethod {
    /// Kinds of end users that the method tells apart; one empty text where it does not.
    static var variants: [String] { get }

    /// The refusal of an end user whom the server does not know. Empty: the user is signed in, and has an account then.
    static var answerToNewcomer: String { get }
    /// The same where end users may not sign up.
    static var answerToNewcomerWithoutSignUp: String { get }

    /// The end user `name` signs in. Its email is `<name>@example.com`.
    static func signIn(_ client: IdentityClient, _ name: Text, _ variant: String) throws

    /// Makes the account of the end user `name` who can sign in by this method.
    static func makeKnown(_ client: IdentityClient, _ name: Text, _ variant: String) throws

    /// Signs in as `name` with a credential that is not right. Throws its refusal.
    static func signInWrongly(_ client: IdentityClient, _ name: Text) throws
}

extension SignInDriver {
    static var variants: [String] { [""] }
    static var answerToNewcomer: String { "" }
    static var answerToNewcomerWithoutSignUp: String { "ADMIN_RESTRICTED_OPERATION" }

    static func makeKnown(_ client: IdentityClient, _ name: Text, _ variant: String) throws {
        try signIn(client, name, variant)
    }

    static func email(_ name: Text) -> Text { Text("\(name)@example.com") }
}

/// A registered method and one of its variants. The tables have a row for each.
struct SignInWay: Sendable, CustomTestStringConvertible {
    let driver: any SignInDriver.Type
    let variant: String

    var testDescription: String { "\(driver.name.rawValue) \(variant)" }
    /// Whether an end user who uses the method again gets another account, or none.
    var isSignUp: Bool { driver is any AccountCreatingMethod.Type }

    static let all: [SignInWay] = SignInMethodName.allCases.flatMap { name -> [SignInWay] in
        guard let driver = name.method as? any SignInDriver.Type else { return [] }
        return driver.variants.map { SignInWay(driver: driver, variant: $0) }
    }

    /// The ways by which an end user comes back to the account it has.
    static let returning = all.filter { !$0.isSignUp }

    func signIn(_ client: IdentityClient, _ name: Text) throws { try driver.signIn(client, name, variant) }
    func makeKnown(_ client: IdentityClient, _ name: Text) throws { try driver.makeKnown(client, name, variant) }

    /// The answer to a newcomer, where end users may sign up or may not.
    func answerToNewcomer(isSignUpOff: Bool) -> String {
        isSignUpOff ? driver.answerToNewcomerWithoutSignUp : driver.answerToNewcomer
    }
}

extension IdentityClient {
    /// Switches on what is off in a new tenant.
    func allowEveryMethod() throws {
        try setTenant(["enable_anonymous_user", "enable_email_link_signin", "enable_phone_signin"]) {
            $0.enableAnonymousUser = true
            $0.enablePhoneSignin = true
            $0.enableEmailLinkSignin = true
        }
    }
}
