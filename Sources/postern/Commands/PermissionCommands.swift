import Base
import Messages
import PosternClient

/// postern can-i
enum PermissionCommands {
    static let all = [canI]

    static let canI = Command(
        path: ["can-i"], methods: ["Project/TestPermissions"],
        summary: "Says whether this credential may call a method for --tenant; without one which methods it may call.",
        example: "-t acme can-i Users/Update", operands: [.optional("method")], isReadOnly: true
    ) { session in
        let name = session.arguments.operand(0).map { name in
            Text(name.contains(".") ? name : "postern.v1." + name)
        }
        let request = ProjectTestPermissionsRequest(
            tenantID: try session.tenantID(), methods: name.map { [$0] } ?? [])
        let client = ProjectClient(channel: try session.channel())
        let permissions = try await client.testPermissions(request, options: session.callOptions()).permissions
        guard name != nil else { return session.output.print(permissions.filter(\.allowed)) }
        session.output.print(permissions)
        guard permissions.first?.allowed == true else {
            throw CommandError(permissions.first?.message.string ?? "no", exitCode: .notAllowed)
        }
    }
}

extension MethodPermission: Record {
    static let columns = ["method", "allowed", "reason"]

    var id: String { method.string }
}
