import Base
import JSON
import Messages
import PosternClient

/// postern user …
enum UserCommands {
    static let all = [
        create, get, list, update, setClaims, revokeTokens, delete, batchDelete, UserImport.command, UserExport.command,
        UserVerifyHash.command,
    ]

    private static let propertyFlags = [
        Flag("email", "EMAIL", "unique in the tenant"),
        Flag("email-verified", "true|false", "whether the email is known to be theirs"),
        Flag("display-name", "TEXT", "the name that people see"),
        Flag("photo-url", "URL", "http or https"),
        Flag("phone-number", "NUMBER", "E.164, for example +4930123456"),
        Flag("disabled", "true|false", "cannot sign in"),
        passwordFileFlag,
    ]

    static let passwordFileFlag = Flag("password-file", "FILE", "holds the password; - is standard input")

    static let create = Command(
        path: ["user", "create"], methods: ["Users/Create"], summary: "Creates a user.",
        example: "-t acme user create --email ann@example.com --display-name Ann --password-file pw",
        flags: [Flag("uid", "UID", "1 to 128 bytes; without it the server makes one")] + propertyFlags,
        isValidatable: true
    ) { session in
        let arguments = session.arguments
        let request = UsersCreateRequest(
            tenantID: try session.tenantID(), uid: arguments.text("uid") ?? .empty,
            email: arguments.text("email") ?? .empty, emailVerified: try arguments.bool("email-verified") ?? false,
            password: try session.passwordFromFile() ?? .empty, displayName: arguments.text("display-name") ?? .empty,
            photoURL: arguments.text("photo-url") ?? .empty, phoneNumber: arguments.text("phone-number") ?? .empty,
            disabled: try arguments.bool("disabled") ?? false, validateOnly: session.isValidatingOnly)
        try await session.output.print(client(session).create(request, options: session.callOptions()).user ?? User())
    }

    static let get: Command = Command(
        path: ["user", "get"], methods: ["Users/Get", "Users/GetByEmail", "Users/GetByPhone", "Users/GetByProvider"],
        summary: "Shows a user, by uid, email, phone number or a provider's identity.",
        example: "-t acme user get --email ann@example.com",
        operands: [.optional("uid|email")],
        flags: [
            Flag("email", "EMAIL", "find the user by this"),
            Flag("phone-number", "NUMBER", "find the user by this, in E.164 form"),
            Flag("provider", "ID", "find the user by an identity of this provider, with --raw-id"),
            Flag("raw-id", "ID", "what the provider calls the user"),
            Flag("issuer", "URL", "whose identity it is (default: the provider's present issuer)"),
        ], isReadOnly: true
    ) { session in
        let (client, tenantID, options) = (try client(session), try session.tenantID(), try session.callOptions())
        let arguments = session.arguments
        let names = [arguments.operand(0), arguments.value("email"), arguments.value("phone-number")]
        let provider = arguments.text("provider")
        guard names.count(where: { $0 != nil }) + (provider == nil ? 0 : 1) == 1 else {
            throw CommandError.usage(
                "name the user by uid, --email, --phone-number or --provider", hint: "postern \(get.example)")
        }
        let user: User?
        if let name = arguments.operand(0) {
            let uid = try await session.uid(named: name)
            let request = UsersGetRequest(tenantID: tenantID, uid: uid, includeLastRefresh: true)
            user = try await client.get(request, options: options).user
        } else if let email = arguments.text("email") {
            let request = UsersGetByEmailRequest(tenantID: tenantID, email: email)
            user = try await client.getByEmail(request, options: options).user
        } else if let number = arguments.text("phone-number") {
            let request = UsersGetByPhoneRequest(tenantID: tenantID, phoneNumber: number)
            user = try await client.getByPhone(request, options: options).user
        } else {
            let identity = ProviderIdentity(
                providerID: provider ?? .empty, rawID: arguments.text("raw-id") ?? .empty,
                issuer: arguments.text("issuer") ?? .empty)
            let request = UsersGetByProviderRequest(tenantID: tenantID, identity: identity)
            user = try await client.getByProvider(request, options: options).user
        }
        session.output.print(user ?? User())
    }

    static let list = Command(
        path: ["user", "list"], methods: ["Users/List"],
        summary: "Lists the users of a tenant, by uid.", example: "-t acme user list -o ndjson",
        flags: [limitFlag], isReadOnly: true
    ) { session in
        let (client, tenantID) = (try client(session), try session.tenantID())
        try await printPages(session) { token, size in
            let request = UsersListRequest(tenantID: tenantID, pageSize: size, pageToken: token)
            let page = try await client.list(request, options: session.callOptions())
            return (page.users, page.nextPageToken)
        }
    }

    static let update: Command = Command(
        path: ["user", "update"], methods: ["Users/Update"],
        summary: "Changes what is given; an empty value removes. Email, password and disabled sign the user out.",
        example: "-t acme user update u1 --display-name \"Ann B.\" --disabled true", operands: [.required("uid|email")],
        flags: propertyFlags + [
            Flag("claims", "JSON", "the custom claims: an object; {} removes them"),
            Flag("link", "PROVIDER=RAW-ID,…", "identities to add"),
            Flag("unlink", "PROVIDER,…", "ways to sign in to remove, before others are added"),
            Flag("revoke-tokens", "sign the user out everywhere"),
        ], isValidatable: true
    ) { session in
        let arguments = session.arguments
        var request = UsersUpdateRequest(
            tenantID: try session.tenantID(), uid: try await session.uid(named: arguments.operands[0]),
            validateOnly: session.isValidatingOnly)
        var paths: [Text] = []
        func note<Value>(_ path: Text, _ value: Value?, _ field: WritableKeyPath<UsersUpdateRequest, Value>) {
            guard let value else { return }
            request[keyPath: field] = value
            paths.append(path)
        }
        note("email", arguments.text("email"), \.email)
        note("email_verified", try arguments.bool("email-verified"), \.emailVerified)
        note("display_name", arguments.text("display-name"), \.displayName)
        note("photo_url", arguments.text("photo-url"), \.photoURL)
        note("phone_number", arguments.text("phone-number"), \.phoneNumber)
        note("disabled", try arguments.bool("disabled"), \.disabled)
        note("password", try session.passwordFromFile(), \.password)
        note("custom_claims_json", arguments.text("claims").map { $0 == "{}" ? [] : $0.bytes }, \.customClaimsJSON)
        note("link_providers", try arguments.elements("link").map(identities), \.linkProviders)
        note("unlink_provider_ids", try arguments.list("unlink"), \.unlinkProviderIDs)
        note("revoke_tokens", arguments.isSet("revoke-tokens") ? true : nil, \.revokeTokens)
        guard !paths.isEmpty else { throw CommandError.usage("nothing to change", hint: "postern \(update.example)") }
        request.updateMask = ProtobufFieldMask(paths: paths)
        try await session.output.print(client(session).update(request, options: session.callOptions()).user ?? User())
    }

    /// `google.com=1234,github.com=5678`
    private static func identities(_ list: [String]) throws(CommandError) -> [ProviderInfo] {
        try list.map { (item) throws(CommandError) in
            let parts = item.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else {
                throw .usage("--link is PROVIDER=RAW-ID, not \"\(item)\"", hint: "postern user link has further flags")
            }
            return ProviderInfo(providerID: Text(String(parts[0])), rawID: Text(String(parts[1])))
        }
    }

    static let setClaims = Command(
        path: ["user", "set-claims"], methods: ["Users/SetCustomClaims"],
        summary: "Replaces the custom claims: a JSON object; {} removes them.",
        example: "-t acme user set-claims u1 '{\"role\":\"editor\"}'",
        operands: [.required("uid|email"), .required("json|-")], isValidatable: true
    ) { session in
        let operand = session.arguments.operands[1]
        let text = operand == "-" ? try session.console.readInput() : [UInt8](operand.utf8)
        let claims: JSONValue
        do throws(JSONError) {
            claims = try JSONValue(parsing: text)
        } catch {
            throw CommandError.usage("the claims are no JSON: \(error)")
        }
        guard let members = claims.object else { throw CommandError.usage("the claims are no JSON object") }
        let request = UsersSetCustomClaimsRequest(
            tenantID: try session.tenantID(), uid: try await session.uid(named: session.arguments.operands[0]),
            customClaimsJSON: members.isEmpty ? [] : claims.serialized(), validateOnly: session.isValidatingOnly)
        let user = try await client(session).setCustomClaims(request, options: session.callOptions()).user
        session.output.print(user ?? User())
    }

    static let revokeTokens = Command(
        path: ["user", "revoke-tokens"], methods: ["Users/RevokeTokens"],
        summary: "Signs a user out everywhere; all tokens until now are refused.",
        example: "-t acme user revoke-tokens u1", operands: [.required("uid|email")], isValidatable: true
    ) { session in
        let request = UsersRevokeTokensRequest(
            tenantID: try session.tenantID(), uid: try await session.uid(named: session.arguments.operands[0]),
            validateOnly: session.isValidatingOnly)
        let user = try await client(session).revokeTokens(request, options: session.callOptions()).user
        session.output.print(user ?? User())
    }

    static let delete = Command(
        path: ["user", "delete"], methods: ["Users/Delete"],
        summary: "Deletes a user.", example: "-t acme user delete u1 --yes",
        operands: [.required("uid|email")], isValidatable: true, prints: .noRecords
    ) { session in
        let name = session.arguments.operands[0]
        let tenantID = try session.tenantID()
        let uid = try await session.uid(named: name)
        try session.confirm("Delete user \(name) of \(ChangeTarget.title(tenantID))?")
        let request = UsersDeleteRequest(
            tenantID: tenantID, uid: uid, validateOnly: session.isValidatingOnly)
        _ = try await client(session).delete(request, options: session.callOptions())
        session.say("user \(name) deleted")
    }

    static let batchDelete = Command(
        path: ["user", "batch-delete"], methods: ["Users/BatchDelete"],
        summary: "Deletes the users whose uids stand in the lines of a file.",
        example: "-t acme user batch-delete uids.txt --confirm=acme", operands: [.required("file|-")],
        flags: [Flag("force", "delete users that are not disabled, too")], isValidatable: true, prints: .noRecords,
        asksForName: true
    ) { session in
        let text = try session.contents(of: session.arguments.operands[0])
        let lines = text.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }).map { Array(Array($0).trimmed()) }
        let uids = try lines.filter { !$0.isEmpty }.map { line in
            guard let uid = Text(validating: line) else { throw CommandError("a line is no text in UTF-8") }
            return uid
        }
        // The name that is confirmed is the name of the tenant whose users go, also if the key says which one it is.
        let tenantID = try await ServedTenant(of: session).tenantID
        try session.confirm(
            "This deletes \(uids.count) users of \(TenantCommands.title(tenantID)), for good.",
            byName: TenantCommands.confirmedName(tenantID))
        var (deletedCount, rejectedCount) = (0, 0)
        try await makeCalls(session, done: deletedCount == 0 ? nil : "\(deletedCount) users were deleted before") {
            for start in stride(from: 0, to: uids.count, by: 1_000) {
                let slice = Array(uids[start..<min(start + 1_000, uids.count)])
                let request = UsersBatchDeleteRequest(
                    tenantID: tenantID, uids: slice, force: session.arguments.isSet("force"),
                    validateOnly: session.isValidatingOnly)
                let answer = try await client(session).batchDelete(request, options: session.callOptions())
                deletedCount += Int(answer.deletedCount)
                rejectedCount += answer.rejections.count
                for rejection in answer.rejections {
                    session.console.say("\(rejection.uid): \(rejection.message) [\(rejection.reason)]")
                }
            }
        }
        session.say("\(deletedCount) users deleted")
        if rejectedCount > 0 { throw CommandError("\(rejectedCount) users were not deleted", exitCode: .partial) }
    }

    private static func client(_ session: Session) throws -> UsersClient {
        UsersClient(channel: try session.channel())
    }
}
