import Base
import JSON
import Messages
import PosternClient

/// postern user count, query and batch-get: finding users among many.
enum UserFindCommands {
    static let all = [count, query, batchGet]

    static let count = Command(
        path: ["user", "count"], methods: ["Users/Count"],
        summary: "Says how many users the tenant has.", example: "-t acme user count",
        isReadOnly: true
    ) { session in
        let request = UsersCountRequest(tenantID: try session.tenantID())
        session.output.print(try await client(session).count(request, options: session.callOptions()))
    }

    static let conditionFlags = [
        Flag("email-prefix", "TEXT", "how the email begins"),
        Flag("name-prefix", "TEXT", "how the display name begins"),
        Flag("phone-prefix", "NUMBER", "how the phone number begins, from its +"),
        Flag("provider", "ID", "has an identity of this provider; password and phone too"),
        Flag("raw-id", "ID", "with --provider: what it calls the user"),
        Flag("disabled", "true|false", "may not sign in"),
        Flag("email-verified", "true|false", "the email is known to be theirs"),
        Flag("created-after", "TIME", "created at this time or later; 7d is seven days ago"),
        Flag("created-before", "TIME", "created before this time"),
        Flag("signed-in-after", "TIME", "signed in last at this time or later"),
        Flag("signed-in-before", "TIME", "signed in last before this time, or never"),
        Flag("claim", "NAME[=JSON]", "has this custom claim, or this value of it"),
    ]

    private static let orders: [(String, UserOrder)] = [
        ("uid", .uid), ("created", .created), ("email", .email), ("phone-number", .phoneNumber),
        ("last-sign-in", .unspecified),
    ]

    static let query = Command(
        path: ["user", "query"], methods: ["Users/Query"],
        summary: "Finds users by conditions that all hold; the operand is any part of an email.",
        example: "-t acme user query ann@exam --disabled false --created-after 30d",
        operands: [.optional("part-of-email")],
        flags: conditionFlags + [
            Flag("sort", "ORDER", "uid, created, email, phone-number or last-sign-in; this one sorts here, at the end"),
            Flag("descending", "the last first"), limitFlag,
        ], isReadOnly: true
    ) { session in
        let (client, arguments) = (try client(session), session.arguments)
        let sort: UserOrder? = try arguments.choice("sort", of: orders)
        var request = try conditions(session)
        request.order = sort ?? .unspecified
        let isSortedHere = sort == .unspecified
        request.descending = arguments.isSet("descending") && !isSortedHere
        var scanned: Int64 = 0
        func fetch(_ token: Text, _ size: Int32) async throws -> ([User], next: Text) {
            (request.pageToken, request.pageSize) = (token, size)
            let page = try await client.query(request, options: session.callOptions())
            scanned += Int64(page.scanned)
            return (page.users, page.nextPageToken)
        }
        if isSortedHere {
            try await printByLastSignIn(session, fetch)
        } else {
            try await printPages(session, fetch)
        }
        if !session.output.format.isForPrograms { session.say("\(scanned) rows were read") }
    }

    /// No index has this order: it changes with every sign-in.
    private static func printByLastSignIn(
        _ session: Session, _ fetch: (Text, Int32) async throws -> ([User], next: Text)
    ) async throws {
        let limit = try session.arguments.integer("limit", in: 1...Int64.max) ?? .max
        var users: [User] = []
        var token = Text.empty
        repeat {
            let (page, next) = try await fetch(token, 1_000)
            users += page
            token = next
        } while !token.isEmpty
        let isDescending = session.arguments.isSet("descending")
        users.sort {
            isDescending
                ? $0.lastSignInAtMicros > $1.lastSignInAtMicros : $0.lastSignInAtMicros < $1.lastSignInAtMicros
        }
        session.output.print(Array(users.prefix(Int(clamping: limit))))
    }

    static func conditions(_ session: Session) throws -> UsersQueryRequest {
        let arguments = session.arguments
        let now = Clock.system.now()
        var request = UsersQueryRequest(tenantID: try session.tenantID())
        if let part = arguments.operand(0) {
            guard !part.isEmpty else { throw CommandError.emptyCondition("the part of an email") }
            request.emailPart = Text(part)
        }
        request.emailPrefix = try arguments.condition("email-prefix")
        request.displayNamePrefix = try arguments.condition("name-prefix")
        request.phoneNumberPrefix = try arguments.condition("phone-prefix")
        request.providerID = try arguments.condition("provider")
        request.rawID = try arguments.condition("raw-id")
        request.disabledCondition = try arguments.bool("disabled").map { .disabled($0) }
        request.emailVerifiedCondition = try arguments.bool("email-verified").map { .emailVerified($0) }
        request.createdFromMicros = try arguments.boundMicros("created-after", now: now)
        request.createdBeforeMicros = try arguments.boundMicros("created-before", now: now)
        request.lastSignInFromMicros = try arguments.boundMicros("signed-in-after", now: now)
        request.lastSignInBeforeMicros = try arguments.boundMicros("signed-in-before", now: now)
        if let claim = arguments.value("claim") {
            let parts = claim.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard !parts[0].isEmpty else { throw CommandError.emptyCondition("--claim") }
            request.claimName = Text(String(parts[0]))
            if parts.count == 2 { request.claimValueJSON = claimValue(String(parts[1])) }
        }
        return request
    }

    /// Text that is not JSON is taken as a string, because quotes are a nuisance in a shell.
    private static func claimValue(_ text: String) -> Text {
        let isJSON = (try? JSONValue(parsing: [UInt8](text.utf8))) != nil
        return isJSON ? Text(text) : Text(unchecked: JSONValue.string(Text(text)).serialized())
    }

    static let batchGet = Command(
        path: ["user", "batch-get"], methods: ["Users/BatchGet"],
        summary: "Shows the users of a list: a uid, an email or a phone number in each line of a file.",
        example: "-t acme user batch-get uids.txt -o ndjson", operands: [.required("file|-")],
        isReadOnly: true
    ) { session in
        let client = try client(session)
        let text = try session.contents(of: session.arguments.operands[0])
        let lines = text.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }).map { $0.trimmedText }
        guard let names = lines as? [Text] else { throw CommandError("a line is no text in UTF-8") }
        var pending = names.filter { !$0.isEmpty }
        var (found, missing): ([User], [Text]) = ([], [])
        while !pending.isEmpty {
            var request = UsersBatchGetRequest(tenantID: try session.tenantID())
            for name in pending.prefix(100) { request.add(name) }
            let answer = try await client.batchGet(request, options: session.callOptions())
            found += answer.users
            missing += answer.notFound.compactMap(\.text)
            pending = answer.notRead.compactMap(\.text) + pending.dropFirst(100)
        }
        session.output.print(found)
        for name in missing { session.say("no user: \(name)") }
        if !missing.isEmpty { throw CommandError("\(missing.count) were not found", exitCode: .partial) }
    }

    private static func client(_ session: Session) throws -> UsersClient {
        UsersClient(channel: try session.channel())
    }
}

extension UsersBatchGetRequest {
    fileprivate mutating func add(_ name: Text) {
        if name.bytes.contains(UInt8(ascii: "@")) {
            emails.append(name)
        } else if name.bytes.first == UInt8(ascii: "+") {
            phoneNumbers.append(name)
        } else {
            uids.append(name)
        }
    }
}

extension UserName {
    fileprivate var text: Text? {
        switch name {
        case .uid(let text), .email(let text), .phoneNumber(let text): text
        case .identity, nil: nil
        }
    }
}

extension ArraySlice<UInt8> {
    fileprivate var trimmedText: Text? { Text(validating: Array(Array(self).trimmed())) }
}
