import Base
import Identity
import Messages
import Service
import Synchronization
import TestSupport
import Testing
import Wire

/// Streams of a cluster's node that lags behind the others.
@Suite struct LaggingStreamTests {
    @Test func healthIsWatchedWithoutTheEngine() async throws {
        try await withTwoNodes(configure: { $0.limits.journal.patience = .milliseconds(50) }) { nodes in
            nodes.journals.second.isAway.store(true, ordering: .relaxed)
            let watch = try RawStream<GRPCHealthCheckResponse>(
                nodes.second, "grpc.health.v1.Health/Watch", GRPCHealthCheckRequest())
            #expect(try watch.next()?.status == .serving)
        }
    }

    /// Opens an import without a message. Returns when the node has admitted the opening.
    private func openImport(_ server: TestServer) throws -> (client: RawClient, stream: UInt32) {
        let client = try server.connect()
        _ = try client.hello()
        let stream = client.nextStream()
        var ping = ByteBuffer()
        ControlFrame.ping(1, ack: false).append(to: &ping)
        let opening = client.request(
            "postern.v1.Users/Import", UsersImportRequest(), stream: stream, kind: .remoteOpen)
        try client.send(opening + ping.copyBytes())
        #expect(try client.readFrame().header.type == .ping)
        // This call's question to the journal comes after the opening's.
        let _: ProjectServerInfoResponse = try server.connect().call(
            "postern.v1.Project/ServerInfo", ProjectServerInfoRequest(),
            metadata: [OutgoingMetadata.Entry(key: "x-postern-consistency", value: "latest")])
        return (client, stream)
    }

    @Test func theFirstMessageOfAStreamIsAdmittedAtTheJournalsEnd() async throws {
        try await withTwoServers { first, second in
            let (client, stream) = try openImport(second)
            let _: TenantsCreateResponse = try first.connect().call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            var buffer = ByteBuffer()
            buffer.appendData(stream: stream) {
                UsersImportRequest(tenantID: "acme", users: [ImportUser(uid: "ada")]).encode(into: &$0)
            }
            try client.send(buffer.copyBytes())
            let frame = try client.readFrame()
            if frame.header.type == .response { let _: UsersImportResponse = try RawClient.response(frame) }
            let answer = try UsersImportResponse(decoding: frame.payload)
            #expect(answer.createdCount == 1)
        }
    }
}
