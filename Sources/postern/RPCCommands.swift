import Base
import JSON
import Messages
import PosternClient

/// postern rpc …: every method of the protocol as it is, also methods without a command of their own.
enum RPCCommands {
    static let all = [list, describe, call]

    static let list = Command(
        path: ["rpc", "list"], summary: "Lists the methods of the protocol this program speaks, and their commands.",
        example: "rpc list", isReadOnly: true
    ) { session in
        session.output.print(ProtocolSchema.shared.methods.map { ListedMethod(method: $0) })
    }

    static let describe = Command(
        path: ["rpc", "describe"], summary: "Shows the fields of a method's request and answer, or of a message.",
        example: "rpc describe Users/Get", operands: [.required("method|message")], isReadOnly: true
    ) { session in
        let (schema, name) = (ProtocolSchema.shared, session.arguments.operands[0])
        let message = schema.messages[Text(name)] ?? schema.messages[Text("postern.v1.\(name)")]
        if let message { return session.output.print(message.fields.map { DescribedField(message.name, $0) }) }
        let method = try schema.method(name)
        let fields = [method.request, method.response].flatMap { type in
            (schema.messages[type]?.fields ?? []).map { DescribedField(type, $0) }
        }
        session.output.print(fields)
    }

    static let call: Command = Command(
        path: ["rpc", "call"],
        summary: "Calls a method with a request in JSON, from a file or standard input; prints the answer's JSON.",
        example: "-t acme rpc call Users/Count", operands: [.required("method"), .optional("file|-")],
        isValidatable: true, prints: .noRecords, takesTenant: true,
        note: """
            Asks before it calls a method that can change something. Where there is no terminal to ask on, add --yes.
            """
    ) { session in
        let method = try ProtocolSchema.shared.method(session.arguments.operands[0])
        let requests = try requests(session, of: method)
        try checkTenant(of: requests, to: method, session.arguments)
        session.setTarget(target(of: requests, to: method))
        if changesSomething(method) { try session.confirm("Call \(method.fullName) with this request?") }
        var call = MethodCall(session, method)
        try await call.run(requests: requests)
    }

    /// Refuses --tenant if the method is not about one tenant, or if a request names another one.
    private static func checkTenant(
        of requests: [JSONValue], to method: ProtocolSchema.Method, _ arguments: Arguments
    ) throws(CommandError) {
        guard let tenant = arguments.text("tenant"), !tenant.isEmpty else { return }
        guard method.namesTenant else {
            throw .usage("\(method.fullName) is not about one tenant, and takes no --tenant")
        }
        guard let other = requests.lazy.compactMap({ $0["tenant_id"]?.text }).first(where: { $0 != tenant }) else {
            return
        }
        throw .usage(
            "--tenant \(tenant) is another one than the request's, \(TenantCommands.title(other))",
            hint: "leave one of them out")
    }

    /// The tenant that the requests name goes before one of the environment or of a context. Methods without
    /// `tenant_id` are for no one tenant.
    private static func target(of requests: [JSONValue], to method: ProtocolSchema.Method) -> ChangeTarget {
        guard method.namesTenant else { return .project }
        var titles: [String] = []
        for request in requests {
            guard let id = request["tenant_id"]?.text else { continue }
            let title = ChangeTarget.title(id)
            if !titles.contains(title) { titles.append(title) }
        }
        return titles.isEmpty ? .usualTenant : .named(titles.joined(separator: ", "))
    }

    /// Whether the method's own commands change something. A method without a command may change anything.
    private static func changesSomething(_ method: ProtocolSchema.Method) -> Bool {
        let commands = method.commands
        return commands.isEmpty || commands.contains { !$0.isReadOnly }
    }

    /// The requests: one JSON object, or one in each line for a method that takes many. Without a file, an empty
    /// object.
    private static func requests(_ session: Session, of method: ProtocolSchema.Method) throws -> [JSONValue] {
        guard let path = session.arguments.operand(1) else { return [.object([])] }
        let text = try session.contents(of: path)
        let parts = method.isClientStreaming ? text.split(separator: 0x0A).map { Array($0) } : [text]
        return try parts.filter { !$0.trimmed().isEmpty }.map { part in
            do throws(JSONError) {
                return try JSONValue(parsing: part)
            } catch {
                throw CommandError.usage("\(path): \(error)")
            }
        }
    }
}

/// One call of a method by name.
private struct MethodCall {
    private let session: Session
    private let method: ProtocolSchema.Method
    private let encoder = MessageEncoder(schema: .shared)
    private let decoder = MessageDecoder(schema: .shared)

    init(_ session: Session, _ method: ProtocolSchema.Method) {
        self.session = session
        self.method = method
    }

    mutating func run(requests: [JSONValue]) async throws {
        // All requests are checked before anything is sent.
        let messages = try requests.map { try RawMessage(encoder.encode(completed($0), as: method.request)) }
        let (service, name) = (method.service.string, method.name.string)
        let channel = try session.channel()
        if method.isClientStreaming {
            let stream: BidirectionalStream<RawMessage, RawMessage> = try await channel.bidirectional(
                service, name, options: session.streamOptions)
            return try await exchange(messages, on: stream)
        }
        let request = messages.first ?? RawMessage()
        if method.isServerStreaming {
            let stream: ServerStream<RawMessage> = try await channel.serverStream(
                service, name, request, options: session.streamOptions)
            for try await answer in stream { try printPart(answer) }
            return
        }
        // These methods count the idempotency keys of an end user (`Command.sendsIdempotencyKeys`).
        let isEndUsers = service == "postern.v1.Accounts"
        let answer: RawMessage = try await channel.unary(
            service, name, request, idempotent: false, options: session.callOptions(withKey: !isEndUsers))
        try print(answer, isOne: true)
    }

    /// Prints the answers while the requests are sent: a server whose answers nobody reads takes no more requests.
    private func exchange(
        _ messages: [RawMessage], on stream: BidirectionalStream<RawMessage, RawMessage>
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                // After a request that cannot be sent, the answers to those before it still come.
                defer { stream.finish() }
                for message in messages { try await stream.send(message) }
            }
            for try await answer in stream { try printPart(answer) }
            try await group.waitForAll()
        }
    }

    /// Adds the command line's tenant to a request that names none. With --dry-run the request changes nothing.
    private func completed(_ json: JSONValue) throws -> JSONValue {
        guard var members = json.object else { return json }
        let fields = Set((ProtocolSchema.shared.messages[method.request]?.fields ?? []).map(\.name))
        let tenantID = try session.tenantID()
        if method.namesTenant, json["tenant_id"] == nil, !tenantID.isEmpty {
            members.append(.init("tenant_id", .string(tenantID)))
        }
        if session.isValidatingOnly {
            guard fields.contains("validate_only") else {
                throw CommandError.usage("\(method.fullName) cannot --dry-run")
            }
            members.removeAll { $0.name == "validate_only" }
            members.append(.init("validate_only", .bool(true)))
        }
        return .object(members)
    }

    /// Prints an answer of many.
    private func printPart(_ answer: RawMessage) throws {
        try print(answer, isOne: false)
        try session.console.checkOutput()
    }

    private func print(_ answer: RawMessage, isOne: Bool) throws {
        let json = try decoder.decode(answer.bytes, as: method.response)
        let bytes = isOne && session.output.format != .ndjson ? json.prettyPrinted() : json.serialized()
        session.console.write(Output.printable(json: bytes) + [0x0A])
    }
}

private struct ListedMethod: Record {
    static let columns = ["method", "kind", "commands"]

    let method: ProtocolSchema.Method

    var id: String { method.fullName }

    private var kind: String {
        switch (method.isClientStreaming, method.isServerStreaming) {
        case (true, _): "stream both ways"
        case (false, true): "stream"
        case (false, false): "call"
        }
    }

    var json: JSONValue {
        let commands = method.commands.map(\.name)
        return [
            "method": .string(Text(method.fullName)), "kind": .string(Text(kind)),
            "request": .string(method.request), "response": .string(method.response),
            "commands": .array(commands.map { .string(Text($0)) }),
        ]
    }
}

private struct DescribedField: Record {
    static let columns = ["message", "field", "type"]

    let message: Text
    let field: ProtocolSchema.Field

    init(_ message: Text, _ field: ProtocolSchema.Field) { (self.message, self.field) = (message, field) }

    var id: String { field.name.string }

    private var type: String {
        let name =
            switch field.kind {
            case .double, .float: "number"
            case .integer, .zigzag, .fixed64, .fixed32: "whole number"
            case .bool: "true or false"
            case .string: "string"
            case .bytes: field.name.string.hasSuffix("_json") ? "JSON" : "hexadecimal digits"
            case .message(let name): name.string
            case .enumeration(let name):
                (ProtocolSchema.shared.enums[name]?.values ?? []).map(\.name.string).joined(separator: " | ")
            }
        return field.isRepeated ? "list of \(name)" : name
    }

    var json: JSONValue {
        [
            "message": .string(message), "field": .string(field.name), "number": .integer(Int64(field.number)),
            "type": .string(Text(type)), "is_one_of": .bool(field.oneofIndex != nil),
        ]
    }
}
