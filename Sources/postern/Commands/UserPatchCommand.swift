import Base
import Messages
import PosternClient

/// postern user patch
enum UserPatchCommand {
    static let all = [patch]

    static let patch: Command = Command(
        path: ["user", "patch"], methods: ["Users/UpdateMany"],
        summary:
            "Changes all users that fulfil conditions, as user query finds them; the operand is any part of an email.",
        example: "-t acme user patch @old.example --claim plan=trial --merge-claims '{\"plan\":null}'",
        operands: [.optional("part-of-email")],
        flags: UserFindCommands.conditionFlags + [
            Flag("all-users", "every user, where no condition is given"),
            Flag("set-disabled", "true|false", "whether they may not sign in"),
            Flag("merge-claims", "JSON", "is merged into the custom claims; null removes one"),
            Flag("revoke-tokens", "ends their sessions and tokens"),
        ], isValidatable: true
    ) { session in
        let arguments = session.arguments
        var query = try UserFindCommands.conditions(session)
        let tenantID = query.tenantID
        query.tenantID = .empty
        var request = UsersUpdateManyRequest(
            tenantID: tenantID, pageSize: 500, query: query, allUsers: arguments.isSet("all-users"),
            validateOnly: session.isValidatingOnly)
        var paths: [Text] = []
        if let disabled = try arguments.bool("set-disabled") {
            request.disabled = disabled
            paths.append("disabled")
        }
        if let claims = arguments.text("merge-claims") {
            request.claimsPatchJSON = claims.bytes
            paths.append("claims_patch_json")
        }
        if arguments.isSet("revoke-tokens") {
            request.revokeTokens = true
            paths.append("revoke_tokens")
        }
        guard !paths.isEmpty else { throw CommandError.usage("nothing to change", hint: "postern \(patch.example)") }
        request.updateMask = ProtobufFieldMask(paths: paths)
        if !session.isValidatingOnly {
            let who = request.allUsers ? "EVERY user" : "all users that fulfil the conditions"
            try session.confirm("Change \(who) of \(ChangeTarget.title(tenantID))?")
        }
        try await run(request, session)
    }

    private static func run(_ first: UsersUpdateManyRequest, _ session: Session) async throws {
        let client = UsersClient(channel: try session.channel())
        var (request, changed, unchanged, rejected) = (first, Int64(0), Int64(0), Int64(0))
        try await makeCalls(session, done: changed == 0 ? nil : "\(changed) users were changed before") {
            repeat {
                let answer = try await client.updateMany(request, options: session.callOptions())
                changed += Int64(answer.changedCount)
                unchanged += Int64(answer.unchangedCount)
                rejected += Int64(answer.rejections.count)
                for rejection in answer.rejections {
                    session.say("\(rejection.uid): \(rejection.reason) \(rejection.message)")
                }
                request.pageToken = answer.nextPageToken
            } while !request.pageToken.isEmpty
        }
        session.output.print(PatchedUsers(changed: changed, unchanged: unchanged, rejected: rejected))
        if rejected > 0 { throw CommandError("\(rejected) users could not be changed", exitCode: .partial) }
    }
}
