import Base
import JSON
import Messages
import PosternClient

/// postern account …: the codes that mails carry, custom tokens, and unlinking.
enum AccountCodeCommands {
    static let all = [sendCode, checkCode, applyCode, resetPassword, signInCustom, unlink]

    private static let kinds: [(String, OobRequestType)] = [
        ("verify-email", .verifyEmail), ("password-reset", .passwordReset), ("sign-in", .emailSignin),
        ("change-email", .verifyAndChangeEmail),
    ]

    static let sendCode = Command(
        path: ["account", "send-code"], methods: ["Accounts/SendOobCode"],
        summary: "Sends a mail with a code, as an application does: for a new password, for an email, or to sign in.",
        example: "-t acme account send-code password-reset --email ann@example.com", operands: [.required("kind")],
        flags: [
            Flag("email", "EMAIL", "with password-reset and sign-in: to whom"),
            Flag("new-email", "EMAIL", "with change-email"),
            Flag("id-token-file", "FILE", "with verify-email and change-email: holds the user's ID token"),
            Flag("continue-url", "URL", "where the link leads afterwards"),
            Flag("locale", "TAG", "the mail's language, for example de"),
        ], prints: .noRecords
    ) { session in
        let arguments = session.arguments
        guard let kind = kinds.first(where: { $0.0 == arguments.operands[0] }) else {
            throw CommandError.usage("a kind is one of \(kinds.map(\.0).joined(separator: ", "))")
        }
        var request = AccountsSendOobCodeRequest(
            tenantID: try session.tenantID(), requestType: kind.1, email: arguments.text("email") ?? .empty,
            newEmail: arguments.text("new-email") ?? .empty, continueURL: arguments.text("continue-url") ?? .empty)
        request.locale = arguments.text("locale") ?? .empty
        if let file = arguments.value("id-token-file") {
            request.idToken = Text(validating: Array(try session.contents(of: file).trimmed())) ?? .empty
        }
        let answer = try await client(session).sendOobCode(request, options: session.callOptions())
        session.say("sent, if there is such an account: \(answer.email)")
    }

    static let checkCode = Command(
        path: ["account", "check-code"], methods: ["Accounts/CheckOobCode"],
        summary: "Says what a mailed code is for, and changes nothing.",
        example: "-t acme account check-code - < code", operands: [.required("code|-")], isReadOnly: true
    ) { session in
        let request = AccountsCheckOobCodeRequest(tenantID: try session.tenantID(), oobCode: try code(session))
        session.output.print(try await client(session).checkOobCode(request, options: session.callOptions()))
    }

    static let applyCode = Command(
        path: ["account", "apply-code"], methods: ["Accounts/ApplyOobCode"],
        summary: "Carries out what a mailed code is for, except a new password.",
        example: "-t acme account apply-code - < code", operands: [.required("code|-")]
    ) { session in
        let request = AccountsApplyOobCodeRequest(tenantID: try session.tenantID(), oobCode: try code(session))
        session.output.print(try await client(session).applyOobCode(request, options: session.callOptions()))
    }

    static let resetPassword = Command(
        path: ["account", "reset-password"], methods: ["Accounts/ResetPassword"],
        summary: "Sets a new password with a mailed code.",
        example: "-t acme account reset-password - --password-file pw < code", operands: [.required("code|-")],
        flags: [UserCommands.passwordFileFlag], prints: .noRecords
    ) { session in
        let request = AccountsResetPasswordRequest(
            tenantID: try session.tenantID(), oobCode: try code(session),
            newPassword: try session.password("New password: "))
        let answer = try await client(session).resetPassword(request, options: session.callOptions())
        session.say("\(answer.email) has a new password; every session is ended")
    }

    static let signInCustom = Command(
        path: ["account", "sign-in-custom"], methods: ["Accounts/SignInWithCustomToken"],
        summary: "Signs in with a custom token.",
        example: "-t acme account sign-in-custom - < custom-token", operands: [.required("custom-token|-")],
        flags: [Flag("device-name", "TEXT", "what the list of sessions calls this device")]
    ) { session in
        let request = AccountsSignInWithCustomTokenRequest(
            tenantID: try session.tenantID(), token: try code(session),
            deviceName: session.arguments.text("device-name") ?? .empty)
        let answer = try await client(session).signInWithCustomToken(request, options: session.callOptions())
        session.output.print(SignedIn(user: answer.user, tokens: answer.tokens))
    }

    static let unlink = Command(
        path: ["account", "unlink"], methods: ["Accounts/Unlink"],
        summary: "Removes a way to sign in from one's own account.",
        example: "-t acme account unlink - github.com < token",
        operands: [.required("id-token|-"), .required("provider-id")],
        flags: [Flag("force", "the last one, too: then nobody can sign in to the account")]
    ) { session in
        let request = AccountsUnlinkRequest(
            tenantID: try session.tenantID(), idToken: try session.token(operand: 0),
            providerID: Text(session.arguments.operands[1]), force: session.arguments.isSet("force"))
        let answer = try await client(session).unlink(request, options: session.callOptions())
        session.output.print(SignedIn(user: answer.user, tokens: answer.tokens))
    }

    private static func code(_ session: Session) throws -> Secret { Secret(try session.token(operand: 0).bytes) }

    private static func client(_ session: Session) throws -> AccountsClient {
        AccountsClient(channel: try session.channel())
    }
}

extension AccountsCheckOobCodeResponse: Record {
    static let columns = ["request_type", "email", "new_email"]

    var id: String { email.string }
}

extension AccountsApplyOobCodeResponse: Record {
    static let columns = ["request_type", "email"]

    var id: String { email.string }
}
