import Base
import JSON
import Messages
import PosternClient

/// postern outbox …
enum OutboxCommands {
    static let all = [list, get, retry, delete]

    private static let states: [(name: String, state: OutboxState)] = [
        ("held", .held), ("pending", .pending), ("sent", .sent), ("dead", .dead),
    ]

    static let list = Command(
        path: ["outbox", "list"], methods: ["Outbox/List"],
        summary: "Lists a tenant's mail, newest first: held, waiting, sent, given up.",
        example: "-t acme outbox list --state dead",
        flags: [Flag("state", "held|pending|sent|dead", "only these"), limitFlag], isReadOnly: true
    ) { session in
        let wanted = session.arguments.value("state")
        let state = states.first { $0.name == wanted }?.state
        guard wanted == nil || state != nil else {
            throw CommandError.usage("--state is held, pending, sent or dead")
        }
        let client = try client(session)
        let tenantID = try session.tenantID()
        try await printPages(session) { token, size in
            let request = OutboxListRequest(
                tenantID: tenantID, state: state ?? .unspecified, pageSize: size, pageToken: token)
            let page = try await client.list(request, options: session.callOptions())
            return (page.messages, page.nextPageToken)
        }
    }

    static let get = Command(
        path: ["outbox", "get"], methods: ["Outbox/Get"],
        summary: "Shows a mail with its link; the event log says who read it.",
        example: "-t acme outbox get 00065f1c2d3e4f50AbCdEfGhIj", operands: [.required("message-id")], isReadOnly: true
    ) { session in
        let request = OutboxGetRequest(
            tenantID: try session.tenantID(), messageID: Text(session.arguments.operands[0]))
        session.output.print(try await client(session).get(request, options: session.callOptions()))
    }

    static let retry = Command(
        path: ["outbox", "retry"], methods: ["Outbox/Retry"],
        summary: "Delivers a dead, waiting or held message at once.",
        example: "-t acme outbox retry 00065f1c2d3e4f50AbCdEfGhIj", operands: [.required("message-id")],
        isValidatable: true
    ) { session in
        let request = OutboxRetryRequest(
            tenantID: try session.tenantID(), messageID: Text(session.arguments.operands[0]),
            validateOnly: session.isValidatingOnly)
        let answer = try await client(session).retry(request, options: session.callOptions())
        session.output.print(answer.message ?? OutboxMessage())
    }

    static let delete = Command(
        path: ["outbox", "delete"], methods: ["Outbox/Delete"], summary: "Deletes a mail; a code in it stays valid.",
        example: "-t acme outbox delete 00065f1c2d3e4f50AbCdEfGhIj", operands: [.required("message-id")],
        isValidatable: true, prints: .noRecords
    ) { session in
        let id = session.arguments.operands[0]
        let request = OutboxDeleteRequest(
            tenantID: try session.tenantID(), messageID: Text(id), validateOnly: session.isValidatingOnly)
        _ = try await client(session).delete(request, options: session.callOptions())
        session.say("message \(id) deleted")
    }

    private static func client(_ session: Session) throws -> OutboxClient {
        OutboxClient(channel: try session.channel())
    }
}

extension OutboxMessage: Record {
    static let columns = ["message_id", "request_type", "to", "state", "attempts", "last_error", "created_at_micros"]

    var id: String { messageID.string }
}

extension OutboxGetResponse: Record {
    static let columns = ["message.message_id", "message.to", "contents.subject", "contents.link"]

    var id: String { message?.messageID.string ?? "" }

    var json: JSONValue {
        var shown = self
        shown.contents = contents ?? OutboxContents()
        return shown.fieldsJSON
    }
}
