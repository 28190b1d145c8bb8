import Base
import PosternAuth

/// What the user of the terminal can do.
struct Commands {
    let auth: Auth

    func run(_ line: String) async throws {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        let operand = words.count > 1 ? words[1] : ""
        switch words.first {
        case "token", "name", "password", "delete":
            guard let user = auth.currentUser else { return print("sign in first") }
            try await change(user, words[0], operand)
        case "sign-up":
            try await auth.createUser(withEmail: operand, password: Terminal.askSecretly("password: "))
        case "sign-in":
            try await auth.signIn(withEmail: operand, password: Terminal.askSecretly("password: "))
        case "sign-in-phone": try await signIn(phoneNumber: operand)
        case "whoami": print(auth.currentUser.map(Self.describe) ?? "nobody")
        case "sign-out": try await auth.signOut()
        case nil: break
        default: print("no such command")
        }
    }

    /// The code belongs to the verification ID: whoever reads the message elsewhere gets nowhere with it.
    private func signIn(phoneNumber: String) async throws {
        let provider = PhoneAuthProvider.provider(auth: auth)
        let verificationID = try await provider.verifyPhoneNumber(phoneNumber)
        let code = Terminal.ask("code: ") ?? ""
        try await auth.signIn(
            with: provider.credential(withVerificationID: verificationID, verificationCode: code))
    }

    private func change(_ user: User, _ command: String, _ operand: String) async throws {
        switch command {
        case "token":
            let token = try await user.idTokenResult()
            print("good until \(token.expirationDate.seconds), signed in with \(token.signInProvider)")
        case "name":
            var change = user.createProfileChangeRequest()
            change.displayName = operand
            try await change.commitChanges()
            print("hello, \(operand)")
        case "password":
            let password = Terminal.askSecretly("new password: ")
            try await withRecentLogin(of: user) {
                try await user.updatePassword(to: password)
            }
            print("changed; every other device is signed out")
        default:
            try await withRecentLogin(of: user) { try await user.delete() }
            print("gone")
        }
    }

    /// What is sensitive needs a login of the last minutes: proves the user again, once, when the server asks for it.
    private func withRecentLogin(
        of user: User, _ body: () async throws -> Void
    ) async throws {
        do {
            try await body()
        } catch AuthErrorCode.requiresRecentLogin where user.email != nil {
            let email = user.email ?? ""
            let password = Terminal.askSecretly("that was long ago; your present password: ")
            try await user.reauthenticate(
                with: EmailAuthProvider.credential(withEmail: email, password: password))
            try await body()
        }
    }

    private static func describe(_ user: User) -> String {
        "\(user.displayName ?? user.email ?? user.phoneNumber ?? "an anonymous user") (\(user.uid))"
    }
}
