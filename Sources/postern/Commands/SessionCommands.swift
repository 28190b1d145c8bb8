import Base
import JSON
import Messages
import PosternClient

/// postern session …: the sessions of a user, for an admin or for the holder of an ID token.
enum SessionCommands {
    static let all = [list, revoke, signOut, watch]

    static let list = Command(
        path: ["session", "list"], methods: ["Users/ListSessions"],
        summary: "Lists a user's live sessions, the one used last first.",
        example: "-t acme session list u1", operands: [.required("uid|email")], isReadOnly: true
    ) { session in
        let request = UsersListSessionsRequest(
            tenantID: try session.tenantID(), uid: try await session.uid(named: session.arguments.operands[0]))
        let client = UsersClient(channel: try session.channel())
        session.output.print(try await client.listSessions(request, options: session.callOptions()).sessions)
    }

    static let revoke = Command(
        path: ["session", "revoke"], methods: ["Users/RevokeSession"],
        summary: "Ends one session of a user; its tokens are refused from now on.",
        example: "-t acme session revoke u1 0f3a…", operands: [.required("uid|email"), .required("session-id")],
        isValidatable: true, prints: .noRecords
    ) { session in
        let operands = session.arguments.operands
        let request = UsersRevokeSessionRequest(
            tenantID: try session.tenantID(), uid: try await session.uid(named: operands[0]),
            sessionID: Text(operands[1]), validateOnly: session.isValidatingOnly)
        let client = UsersClient(channel: try session.channel())
        _ = try await client.revokeSession(request, options: session.callOptions())
        session.say("session \(operands[1]) ended")
    }

    static let signOut = Command(
        path: ["session", "sign-out"], methods: ["Sessions/SignOut"], summary: "Ends the session of a refresh token.",
        example: "-t acme session sign-out - < refresh-token", operands: [.required("refresh-token|-")],
        prints: .noRecords
    ) { session in
        let request = SessionsSignOutRequest(
            tenantID: try session.tenantID(), refreshToken: try session.token(operand: 0))
        let client = SessionsClient(channel: try session.channel())
        _ = try await client.signOut(request, options: session.callOptions())
        session.say("signed out")
    }

    static let watch = Command(
        path: ["session", "watch"], methods: ["Sessions/WatchAuthState"],
        summary: "Prints what happens to the session of an ID token, until it ends.",
        example: "-t acme session watch - -o ndjson < id-token", operands: [.required("id-token|-")], isReadOnly: true
    ) { session in
        let request = SessionsWatchAuthStateRequest(
            tenantID: try session.tenantID(), idToken: try session.token(operand: 0))
        let client = SessionsClient(channel: try session.channel())
        do {
            for try await state in try await client.watchAuthState(request, options: session.streamOptions) {
                try session.printNext(state)
            }
        } catch let failure as Failure where failure.is(.shuttingDown) {
            // Changes in between would be missed, so the user has to start the watch again.
            var failure = failure
            failure.message = "The server stops; the session goes on, watch it again when the server is back."
            throw failure
        }
    }
}

extension Messages.Session: Record {
    static let columns = [
        "session_id", "device_name", "end_user_ip", "sign_in_provider", "created_at_micros", "last_used_at_micros",
        "expires_at_micros",
    ]

    var id: String { sessionID.string }
}

extension SessionsWatchAuthStateResponse: Record {
    static let columns = ["change", "refresh_cause", "end_cause", "user.uid"]

    var id: String { session?.sessionID.string ?? "" }

    /// The account's end comes without the user and the session.
    static var whole: JSONValue? { Self(user: User(), session: Messages.Session()).json }

    /// Null where there is no cause.
    var json: JSONValue {
        let members = (fieldsJSON.object ?? []).map { member in
            let isEmpty = member.name == "end_cause" ? endCause.isEmpty : refreshCause == .unspecified
            let isCause = member.name == "end_cause" || member.name == "refresh_cause"
            return isCause && isEmpty ? JSONValue.Member(member.name, .null) : member
        }
        return .object(members)
    }
}
