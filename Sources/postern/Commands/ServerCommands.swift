import Base
import JSON
import Messages
import PosternClient

/// postern server …
enum ServerCommands {
    static let all = [info, health, stats, CertificateCommands.make]

    static let info = Command(
        path: ["server", "info"], methods: ["Project/ServerInfo"],
        summary: "Shows the server's version, protocol and limits.", example: "server info",
        isReadOnly: true
    ) { session in
        let client = ProjectClient(channel: try session.channel())
        session.output.print(try await client.serverInfo(.init(), options: session.callOptions()))
    }

    static let health = Command(
        path: ["server", "health"], methods: ["grpc.health.v1.Health/Check"],
        summary: "Says whether the server serves; exits with 6 if not. Needs no key.",
        example: "server health --timeout 1s", isReadOnly: true
    ) { session in
        let client = HealthClient(channel: try session.channel())
        let status = try await client.check(.init(), options: session.callOptions()).status
        session.output.print(Health(status: status))
        if status != .serving { throw CommandError("the server does not serve", exitCode: .unavailable) }
    }

    static let stats = Command(
        path: ["server", "stats"], methods: ["Project/Stats"],
        summary: "Shows the counters since the start; /metrics has the same.",
        example: "server stats -o json", isReadOnly: true
    ) { session in
        let client = ProjectClient(channel: try session.channel())
        session.output.print(try await client.stats(.init(), options: session.callOptions()).values)
    }
}

private struct Health: Record {
    static let columns = ["status"]

    let status: GRPCHealthCheckResponse.ServingStatus

    var id: String { json["status"]?.string ?? "" }

    /// grpc.health.v1's enum has no prefix.
    var json: JSONValue {
        switch status {
        case .unknown: ["status": "UNKNOWN"]
        case .serving: ["status": "SERVING"]
        case .notServing: ["status": "NOT_SERVING"]
        case .serviceUnknown: ["status": "SERVICE_UNKNOWN"]
        }
    }
}
