import Base
import PosternAdmin
import PosternClient
import TestSupport
import Testing

/// A fresh server, and administrators who reach it over TCP.
struct AdminScene {
    let server: TestServer
    let channel: Channel
    /// The same as `channel`, or a way around the proxy.
    let direct: Channel

    var project: ProjectAdmin { ProjectAdmin(channel: channel) }
    /// An administrator of the default pool.
    var tenant: TenantAdmin { project.tenant("") }

    static func run(_ body: (AdminScene) async throws -> Void) async throws {
        try await withServer { server in
            let channel = try Channel(address: "127.0.0.1:\(server.port)", credentials: .apiKey(server.adminKey))
            try await body(AdminScene(server: server, channel: channel, direct: channel))
            await channel.shutdown()
        }
    }

    /// The same through a proxy that can cut the connection.
    static func runThroughProxy(
        methods: [String] = [], _ body: (AdminScene, CuttingProxy) async throws -> Void
    ) async throws {
        try await withServer { server in
            let proxy = CuttingProxy(target: server.port, methods: methods)
            var options = ChannelOptions()
            options.reconnect.firstDelay = .milliseconds(20)
            let channel = try Channel(
                address: proxy.address, credentials: .apiKey(server.adminKey), options: options)
            let direct = try Channel(address: "127.0.0.1:\(server.port)", credentials: .apiKey(server.adminKey))
            try await body(AdminScene(server: server, channel: channel, direct: direct), proxy)
            await direct.shutdown()
            await channel.shutdown()
            proxy.stop()
        }
    }
}

/// The reason that `body` is refused for; "" if it is not refused.
func reason(_ body: () async throws(Failure) -> Void) async -> String {
    do throws(Failure) {
        try await body()
        return ""
    } catch {
        return error.reason
    }
}

/// Expects that `body` is refused for this reason.
///
/// From Swift 6.3, a closure inside of `#expect` and another one of its type in the same function get one symbol, and
/// one of them runs for both: closures stay outside.
func expectRefusal(
    _ wanted: String, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws(Failure) -> Void
) async {
    let found = await reason(body)
    #expect(found == wanted, sourceLocation: sourceLocation)
}
