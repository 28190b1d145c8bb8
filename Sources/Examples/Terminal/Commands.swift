import Base
import PosternAuth

/// The commands of the terminal's user.
struct Commands {
    let auth: Auth

    private var secondFactors: SecondFactors { SecondFactors(auth: auth) }

    func run(_ line: String) async throws {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        let operand = words.count > 1 ? words[1] : ""
        switch words.first {
        case "token", "name", "password", "delete", "factors", "add-factor", "remove-factor", "recovery-codes":
            guard let user = auth.currentUser else { return print("sign in first") }
            try await change(user, words[0], operand)
        case "sign-up":
            let password = Terminal.askSecretly("password: ")
            try await secondFactors.asked { try await auth.createUser(withEmail: operand, password: password) }
        case "sign-in":
            let password = Terminal.askSecretly("password: ")
            try await secondFactors.asked { try await auth.signIn(withEmail: operand, password: password) }
        case "sign-in-phone": try await signIn(phoneNumber: operand)
        case "whoami": print(auth.currentUser.map(Self.describe) ?? "nobody")
        case "sign-out": try await auth.signOut()
        case nil: break
        default: print("no such command")
        }
    }

    /// The code belongs to the verification ID: somebody who reads the message elsewhere cannot use it.
    private func signIn(phoneNumber: String) async throws {
        let provider = PhoneAuthProvider.provider(auth: auth)
        let verificationID = try await provider.verifyPhoneNumber(phoneNumber)
        let code = Terminal.ask("code: ") ?? ""
        let credential = provider.credential(withVerificationID: verificationID, verificationCode: code)
        try await secondFactors.asked { try await auth.signIn(with: credential) }
    }

    private func change(_ user: User, _ command: String, _ operand: String) async throws {
        switch command {
        case "token":
            let token = try await user.idTokenResult()
            let factor = token.signInSecondFactor.map { " and \($0)" } ?? ""
            print("good until \(token.expirationDate.seconds), signed in with \(token.signInProvider)\(factor)")
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
        case "factors": secondFactors.list(user)
        case "add-factor": try await withRecentLogin(of: user) { try await secondFactors.add(operand, to: user) }
        case "remove-factor":
            try await withRecentLogin(of: user) { try await user.multiFactor.unenroll(withFactorUID: operand) }
            print("removed")
        case "recovery-codes":
            try await withRecentLogin(of: user) {
                for code in try await user.multiFactor.renewRecoveryCodes() { print("  recovery code: \(code)") }
            }
        default:
            try await withRecentLogin(of: user) { try await user.delete() }
            print("gone")
        }
    }

    /// Runs a sensitive change, which needs a recent login. If the server asks for one, proves the user again, once.
    private func withRecentLogin(
        of user: User, _ body: () async throws -> Void
    ) async throws {
        do {
            try await body()
        } catch AuthErrorCode.requiresRecentLogin where user.email != nil {
            let email = user.email ?? ""
            let password = Terminal.askSecretly("that was long ago; your present password: ")
            let credential = EmailAuthProvider.credential(withEmail: email, password: password)
            try await secondFactors.asked { try await user.reauthenticate(with: credential) }
            try await body()
        }
    }

    private static func describe(_ user: User) -> String {
        "\(user.displayName ?? user.email ?? user.phoneNumber ?? "an anonymous user") (\(user.uid))"
    }
}
