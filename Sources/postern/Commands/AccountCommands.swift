import Base
import JSON
import Messages
import PosternClient

/// postern account …: acts as an end user, bound by the tenant's self-service toggles.
enum AccountCommands {
    static let all = [signUp, signIn, authURI, signInWithIdp, lookup, update, delete]

    private static let deviceNameFlag = Flag("device-name", "TEXT", "what the list of sessions calls this device")
    private static let endUserIPFlag = Flag(
        "end-user-ip", "ADDRESS", "for throttling, with a key that is trusted for it")

    static let signUp: Command = Command(
        path: ["account", "sign-up"], methods: ["Accounts/SignUp"], summary: "Creates an account and signs it in.",
        example: "-t acme account sign-up --email ann@example.com",
        flags: [
            Flag("email", "EMAIL", "with a password"), UserCommands.passwordFileFlag,
            Flag("anonymous", "without email and password"), Flag("display-name", "TEXT", "the name that people see"),
            deviceNameFlag, endUserIPFlag,
        ]
    ) { session in
        let arguments = session.arguments
        let email = arguments.text("email")
        guard (email != nil) != arguments.isSet("anonymous") else {
            throw CommandError.usage("say who: --email EMAIL or --anonymous", hint: "postern \(signUp.example)")
        }
        let request = AccountsSignUpRequest(
            tenantID: try session.tenantID(), email: email ?? .empty,
            password: email == nil ? .empty : try session.password("Password: "),
            displayName: arguments.text("display-name") ?? .empty, endUserIP: arguments.text("end-user-ip") ?? .empty,
            deviceName: arguments.text("device-name") ?? .empty)
        let response = try await client(session).signUp(request, options: session.callOptions())
        session.output.print(SignedIn(user: response.user, tokens: response.tokens))
    }

    static let signIn: Command = Command(
        path: ["account", "sign-in"], methods: ["Accounts/SignInWithPassword"],
        summary: "Signs in with email and password.",
        example: "-t acme account sign-in --email ann@example.com",
        flags: [
            Flag("email", "EMAIL", "whose account it is"), UserCommands.passwordFileFlag, deviceNameFlag, endUserIPFlag,
        ]
    ) { session in
        guard let email = session.arguments.text("email") else {
            throw CommandError.usage("--email is missing", hint: "postern \(signIn.example)")
        }
        let request = AccountsSignInWithPasswordRequest(
            tenantID: try session.tenantID(), email: email, password: try session.password("Password: "),
            endUserIP: session.arguments.text("end-user-ip") ?? .empty,
            deviceName: session.arguments.text("device-name") ?? .empty)
        let response = try await client(session).signInWithPassword(request, options: session.callOptions())
        session.output.print(SignedIn(user: response.user, tokens: response.tokens))
    }

    static let authURI = Command(
        path: ["account", "auth-uri"], methods: ["Accounts/CreateAuthUri"],
        summary: "Says where a browser goes to sign in with an identity provider.",
        example: "-t acme account auth-uri google.com --continue-uri https://app.example.com/back",
        operands: [.required("provider-id")],
        flags: [
            Flag("continue-uri", "URI", "where the provider sends the browser back"),
            Flag("scopes", "SCOPE,…", "beyond the provider's usual ones"),
            Flag("parameters", "NAME=VALUE,…", "further ones of the request, such as prompt=login"),
        ], isReadOnly: true
    ) { session in
        let arguments = session.arguments
        var request = AccountsCreateAuthUriRequest(
            tenantID: try session.tenantID(), providerID: Text(arguments.operands[0]),
            continueURI: arguments.text("continue-uri") ?? .empty)
        request.scopes = try arguments.list("scopes") ?? []
        request.customParameters = try (arguments.elements("parameters") ?? []).map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1).map { Text(String($0)) }
            guard parts.count == 2 else { throw CommandError.usage("--parameters is NAME=VALUE,…, not \"\(pair)\"") }
            return AuthUriParameter(name: parts[0], value: parts[1])
        }
        session.output.print(try await client(session).createAuthUri(request, options: session.callOptions()))
    }

    static let signInWithIdp = Command(
        path: ["account", "sign-in-idp"], methods: ["Accounts/SignInWithIdp"],
        summary: "Signs in with an ID token or a code of an identity provider, or links it.",
        example: "-t acme account sign-in-idp google.com - < provider-id-token",
        operands: [.required("provider-id"), .required("provider-id-token|code|-")],
        flags: [
            Flag("continue-uri", "URI", "what is given is a code that came back there (see account auth-uri)"),
            Flag("code-verifier", "TEXT", "with --continue-uri: from account auth-uri"),
            Flag("nonce", "TEXT", "that the provider was asked with"),
            Flag("link-to-file", "FILE", "holds an ID token of ours: links to its user"), endUserIPFlag,
        ]
    ) { session in
        let arguments = session.arguments
        let proof = Secret(try session.token(operand: 1).bytes)
        var credential = IdpCredential(
            providerID: Text(arguments.operands[0]), credential: .providerIDToken(proof),
            nonce: arguments.text("nonce") ?? .empty)
        if let uri = arguments.text("continue-uri") {
            credential.credential = .authorizationCode(proof)
            credential.redirectURI = uri
            credential.codeVerifier = Secret((arguments.text("code-verifier") ?? .empty).bytes)
        }
        var request = AccountsSignInWithIdpRequest(
            tenantID: try session.tenantID(), credential: credential,
            endUserIP: arguments.text("end-user-ip") ?? .empty)
        if let file = arguments.value("link-to-file") {
            request.idToken = Text(
                String(decoding: try session.contents(of: file).withoutFinalLineFeed(), as: UTF8.self))
        }
        let response = try await client(session).signInWithIdp(request, options: session.callOptions())
        session.output.print(SignedIn(user: response.user, tokens: response.tokens))
    }

    static let lookup = Command(
        path: ["account", "lookup"], methods: ["Accounts/Lookup"], summary: "Shows the account an ID token belongs to.",
        example: "-t acme account lookup - < token", operands: [.required("id-token|-")], isReadOnly: true
    ) { session in
        let request = AccountsLookupRequest(
            tenantID: try session.tenantID(), idToken: try session.token(operand: 0))
        session.output.print(try await client(session).lookup(request, options: session.callOptions()).user ?? User())
    }

    static let update: Command = Command(
        path: ["account", "update"], methods: ["Accounts/Update"],
        summary: "Changes one's own profile or password; a new password signs every other session out.",
        example: "-t acme account update - --display-name Ann < token", operands: [.required("id-token|-")],
        flags: [
            Flag("display-name", "TEXT", "the name that people see"), Flag("photo-url", "URL", "http or https"),
            UserCommands.passwordFileFlag,
        ], isValidatable: true
    ) { session in
        let arguments = session.arguments
        var request = AccountsUpdateRequest(
            tenantID: try session.tenantID(), idToken: try session.token(operand: 0),
            validateOnly: session.isValidatingOnly)
        var paths: [Text] = []
        if let name = arguments.text("display-name") {
            request.displayName = name
            paths.append("display_name")
        }
        if let photo = arguments.text("photo-url") {
            request.photoURL = photo
            paths.append("photo_url")
        }
        if let password = try session.passwordFromFile() {
            request.password = password
            paths.append("password")
        }
        guard !paths.isEmpty else { throw CommandError.usage("nothing to change", hint: "postern \(update.example)") }
        request.updateMask = ProtobufFieldMask(paths: paths)
        let response = try await client(session).update(request, options: session.callOptions())
        session.output.print(SignedIn(user: response.user, tokens: response.tokens))
    }

    static let delete = Command(
        path: ["account", "delete"], methods: ["Accounts/Delete"],
        summary: "Deletes one's own account.", example: "-t acme account delete - --yes < token",
        operands: [.required("id-token|-")], isValidatable: true, prints: .noRecords
    ) { session in
        let token = try session.token(operand: 0)
        try session.confirm("Delete the account this token belongs to?")
        let request = AccountsDeleteRequest(
            tenantID: try session.tenantID(), idToken: token, validateOnly: session.isValidatingOnly)
        _ = try await client(session).delete(request, options: session.callOptions())
        session.say("account deleted")
    }

    private static func client(_ session: Session) throws -> AccountsClient {
        AccountsClient(channel: try session.channel())
    }
}

extension AccountsCreateAuthUriResponse: Record {
    static let columns = ["auth_uri"]

    var id: String { authURI.string }
}
