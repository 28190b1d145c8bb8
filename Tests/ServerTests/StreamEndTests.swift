import Base
import Messages
import TestSupport
import Testing
import Wire

/// Every stream that was begun with a credential ends with it, whatever the stream waits for: all stream methods of
/// the published descriptors × a client that reads and one that lets the server send nothing.
@Suite struct StreamEndTests {
    /// Streams that end by themselves, and may have done so before the key was revoked.
    private static let finite: Set<String> = ["postern.v1.Users/Export", "postern.v1.Project/Backup"]

    @Test(arguments: [1 << 20, 1] as [UInt32])
    func `Every stream ends when its key is revoked`(_ window: UInt32) async throws {
        let methods = PublishedMethod.all.filter { $0.isResponseStreaming && $0.role != 0 }
        #expect(methods.count >= 4)
        try await withServer { server in
            let client = try IdentityClient(server)
            let tokens = try #require(try client.signUp("ada@example.com").tokens)
            for method in methods {
                let made: ProjectCreateApiKeyResponse = try client.client.call(
                    "postern.v1.Project/CreateApiKey",
                    ProjectCreateApiKeyRequest(role: .projectAdmin, scope: Scope(tenants: .all(true))))
                let caller = try server.connect()
                caller.apiKey = made.secretKey
                _ = try caller.hello(WireHello(protocolVersion: 1, initialWindow: window, software: "raw"))
                let stream = caller.nextStream()
                try caller.send(
                    caller.request(
                        method.fullName, Self.request(of: method, tokens), stream: stream,
                        kind: method.isRequestStreaming ? .remoteOpen : .remoteClosed))
                // The answer to this call tells that the stream has begun.
                let other = caller.nextStream()
                try caller.send(
                    caller.request("grpc.health.v1.Health/Check", GRPCHealthCheckRequest(), stream: other))
                var hasEndedWell = false
                func isGoodEnd(_ frame: RawClient.Frame) -> Bool {
                    Self.finite.contains(method.fullName) && frame.header.flags.contains(.noData)
                }
                while true {
                    let frame = try caller.readFrame()
                    if frame.header.stream == other { break }
                    hasEndedWell = hasEndedWell || isGoodEnd(frame)
                }
                let _: ProjectRevokeApiKeyResponse = try client.client.call(
                    "postern.v1.Project/RevokeApiKey",
                    ProjectRevokeApiKeyRequest(apiKeyID: try #require(made.apiKey).apiKeyID))
                if hasEndedWell { continue }
                var end: RawClient.Frame
                repeat { end = try caller.readFrame() } while end.header.type != .response && !isGoodEnd(end)
                if isGoodEnd(end) { continue }
                let last = end
                expectRefusal("CALLER_UNAUTHENTICATED", "\(method.fullName)") {
                    let _: EncodedMessage = try RawClient.response(last)
                }
            }
        }
    }

    private static func request(of method: PublishedMethod, _ tokens: TokenPair) -> EncodedMessage {
        switch method.fullName {
        case "postern.v1.Sessions/WatchAuthState":
            EncodedMessage(SessionsWatchAuthStateRequest(idToken: tokens.idToken))
        case "postern.v1.Users/Import": EncodedMessage(UsersImportRequest(users: [ImportUser(uid: "u1")]))
        default: EncodedMessage()
        }
    }
}
