import Base
import JSON
import Messages
import PosternClient

/// postern service-account key …
enum ServiceAccountKeyCommands {
    static let all = [create, upload, list, revoke]

    private static let lifetimeFlag = Flag("lifetime", "DURATION", "how long it is valid (default: until revoked)")

    static let create = Command(
        path: ["service-account", "key", "create"], methods: ["Project/CreateServiceAccountKey"],
        summary: "Makes a key pair and writes its key file, which cannot be read again.",
        example: "service-account key create shop-backend --key-out shop-backend.json",
        operands: [.required("service-account-id")],
        flags: [
            Flag("key-out", "FILE", "write the key file there, a new one readable by you only; - prints it"),
            Flag("algorithm", "NAME", "RS256 (default; what Admin SDKs read) or ES256"), lifetimeFlag,
        ], isValidatable: true,
        ifAnswerIsLost: "if postern service-account key list shows a new key, its key file is lost: revoke the key"
    ) { session in
        guard session.arguments.value("key-out") != nil else {
            throw CommandError.usage("say where the key file goes: --key-out FILE")
        }
        let request = ProjectCreateServiceAccountKeyRequest(
            serviceAccountID: ServiceAccountCommands.id(session),
            algorithm: session.arguments.text("algorithm") ?? .empty, lifetimeSeconds: try lifetimeSeconds(session),
            validateOnly: session.isValidatingOnly)
        try session.output.checkFields(ServiceAccountKey())
        let client = try ServiceAccountCommands.client(session)
        let options = try session.callOptions()
        let file = try session.newKeyFile()
        let response: ProjectCreateServiceAccountKeyResponse
        if let file {
            response = try await file.kept { try await client.createServiceAccountKey(request, options: options) }
        } else {
            response = try await client.createServiceAccountKey(request, options: options)
        }
        if session.isValidatingOnly { return session.say("a key is made") }
        let keyFile: [UInt8] = response.keyFileJSON.withBytes { Array($0) } + [0x0A]
        let key = response.key ?? ServiceAccountKey()
        let account = ServiceAccountCommands.id(session)
        let advice = "the key was made and is lost; undo it: postern service-account key revoke \(account) \(key.keyID)"
        guard let file else {
            session.console.write(keyFile)
            return try session.checkThatSecretWasPrinted(ifLost: advice)
        }
        try file.finish(with: keyFile, ifLost: advice)
        session.say("the key is in \(file.path)")
        session.output.print(key)
    }

    static let upload = Command(
        path: ["service-account", "key", "upload"], methods: ["Project/UploadServiceAccountKey"],
        summary: "Adds a public key whose private part stays where it was made.",
        example: "service-account key upload shop-backend shop-backend.pem",
        operands: [.required("service-account-id"), .required("public-key-file|-")], flags: [lifetimeFlag],
        isValidatable: true
    ) { session in
        let request = ProjectUploadServiceAccountKeyRequest(
            serviceAccountID: ServiceAccountCommands.id(session),
            publicKey: try session.contents(of: session.arguments.operands[1]),
            lifetimeSeconds: try lifetimeSeconds(session), validateOnly: session.isValidatingOnly)
        let client = try ServiceAccountCommands.client(session)
        let response = try await client.uploadServiceAccountKey(request, options: session.callOptions())
        session.output.print(response.key ?? ServiceAccountKey())
    }

    static let list = Command(
        path: ["service-account", "key", "list"], methods: ["Project/ListServiceAccountKeys"],
        summary: "Lists a service account's keys, revoked ones too.",
        example: "service-account key list shop-backend", operands: [.required("service-account-id")], isReadOnly: true
    ) { session in
        let request = ProjectListServiceAccountKeysRequest(serviceAccountID: ServiceAccountCommands.id(session))
        let client = try ServiceAccountCommands.client(session)
        session.output.print(try await client.listServiceAccountKeys(request, options: session.callOptions()).keys)
    }

    static let revoke = Command(
        path: ["service-account", "key", "revoke"], methods: ["Project/RevokeServiceAccountKey"],
        summary: "Refuses all that a key signed or signs, everywhere.",
        example: "service-account key revoke shop-backend <key-id>",
        operands: [.required("service-account-id"), .required("key-id")], isValidatable: true
    ) { session in
        let keyID = session.arguments.operands[1]
        try session.confirm("Revoke key \(keyID)? Whoever uses it is refused at once.")
        let request = ProjectRevokeServiceAccountKeyRequest(
            serviceAccountID: ServiceAccountCommands.id(session), keyID: Text(keyID),
            validateOnly: session.isValidatingOnly)
        let client = try ServiceAccountCommands.client(session)
        let response = try await client.revokeServiceAccountKey(request, options: session.callOptions())
        session.output.print(response.key ?? ServiceAccountKey())
    }

    private static func lifetimeSeconds(_ session: Session) throws(CommandError) -> Int64 {
        try session.arguments.positiveSeconds("lifetime", unless: "without it the key is valid until it is revoked")
            ?? 0
    }
}

extension ServiceAccountKey: Record {
    static let columns = [
        "key_id", "algorithm", "uploaded", "created_at_micros", "expires_at_micros", "revoked_at_micros",
    ]

    var id: String { keyID.string }
}
