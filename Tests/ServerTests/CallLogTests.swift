import Base
import Glibc
import JSON
import Messages
import Synchronization
import TestSupport
import Testing
import Transport
import Wire

@testable import Service

/// The log lines of calls: the access log, and the lines about slow calls.
@Suite struct CallLogTests {
    private static let trace = "0af7651916cd43dd8448eb211c80319c"
    private static let parent: Text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    /// Runs `body` against a server with an access log; returns its lines.
    private static func lines(
        oneIn: Int = 1, _ body: (TestServer) async throws -> Void
    ) async throws -> [JSONValue] {
        try await withTemporaryDirectory { directory in
            let sink = try LineSink(
                .file("\(directory)/calls"), byteCountMax: 1 << 20, noteOfDropped: { _ in [] }, onTrouble: { _ in })
            try await withServer(configure: {
                $0.calls.sink = sink
                $0.calls.oneIn = oneIn
            }) { try await body($0) }
            sink.close()
            return try (readFile("\(directory)/calls") ?? []).split(separator: UInt8(ascii: "\n")).map {
                try JSONValue(parsing: Array($0))
            }
        }
    }

    @Test(.disabled(if: RawClient.callsByGRPC, "HTTP/2 carries no such request id"))
    func `A call leaves one line with what is known of it`() async throws {
        let lines = try await Self.lines { server in
            let client = try server.connect()
            let metadata: [OutgoingMetadata.Entry] = [
                .init(key: "x-request-id", value: "mine\u{1B}\"é"), .init(key: "traceparent", value: Self.parent),
            ]
            _ = try client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"),
                returning: TenantsCreateResponse.self)
            _ = try client.call(
                "postern.v1.Users/Create",
                UsersCreateRequest(
                    tenantID: "acme", uid: "ada", email: "a@example.com", password: Secret("a long password")),
                returning: UsersCreateResponse.self, metadata: metadata)
            _ = try client.call(
                "postern.v1.Users/Get", UsersGetRequest(tenantID: "acme", uid: "ada"),
                returning: UsersGetResponse.self, metadata: metadata)
            _ = try client.call(
                "postern.v1.Users/List", UsersListRequest(tenantID: "acme"), returning: UsersListResponse.self)
            _ = try client.call(
                "postern.v1.Project/Stats", ProjectStatsRequest(), returning: ProjectStatsResponse.self)
        }
        #expect(
            lines.map { $0["method"]?.string } == [
                "postern.v1.Tenants/Create", "postern.v1.Users/Create", "postern.v1.Users/Get",
                "postern.v1.Users/List", "postern.v1.Project/Stats",
            ])
        #expect(lines.map { $0["tenant"]?.string } == ["acme", "acme", "acme", "acme", nil])
        #expect(lines.map { $0["trace_id"]?.string } == [nil, Self.trace, Self.trace, nil, nil])
        for line in lines {
            #expect(line["message"] == "call")
            #expect(line["status"] == "OK")
            #expect(line["role"] == "project-admin")
            #expect(line["caller"] != nil)
            #expect(line["caller"] == lines[0]["caller"])
            #expect(line["connection"] == lines[0]["connection"])
        }
        #expect(lines[1]["request_id"]?.string == "mine\u{1B}\"é")
        for (line, waits) in zip(lines, [true, true, false, true, false]) {
            for key in ["queue_micros", "work_micros", "commit_micros"] {
                #expect((line[Text(key)] != nil) == waits, "\(key)")
            }
            #expect(line["duration_micros"] != nil)
        }
    }

    @Test func `A line says the protocol of its connection, and whether TLS carried it`() async throws {
        let lines = try await withTemporaryDirectory { directory in
            let certificates = try TestCertificates(in: directory)
            return try await Self.lines { server in
                let stats = "postern.v1.Project/Stats"
                _ = try server.connect().call(
                    stats, ProjectStatsRequest(), returning: ProjectStatsResponse.self)
                let gRPC = try GRPCCaller(port: server.port)
                _ = try gRPC.call(stats, [[]])
                let settings = ServerTLS.Settings(
                    certificateFile: certificates.certificateFile, keyFile: certificates.keyFile)
                let tls = try ServerTLS(settings, limits: Limits(), log: .silent)
                let address = try #require(SocketAddress(host: "127.0.0.1", port: 0))
                let listener = try server.instance.server.listen(address, tls: tls)
                listener.start()
                defer { listener.close() }
                let client = try TLSClient(port: listener.address.port, certificates.clientConfiguration())
                try client.send(RawClient.unconnected().request(stats, ProjectStatsRequest(), stream: 1))
                _ = try client.receive(FrameHeader.byteCount)
            }
        }
        let native = RawClient.callsByGRPC ? "grpc" : "native"
        #expect(lines.map { $0["protocol"]?.string } == [native, "grpc", "native+tls"])
    }

    @Test func `A line counts the bytes of the messages`() async throws {
        let request = UsersGetRequest(tenantID: "", uid: "ada")
        let lines = try await Self.lines { server in
            let client = try server.connect()
            _ = try client.call(
                "postern.v1.Users/Create", UsersCreateRequest(uid: "ada"), returning: UsersCreateResponse.self)
            _ = try client.call("postern.v1.Users/Get", request, returning: UsersGetResponse.self)
            _ = try client.call("postern.v1.Users/List", UsersListRequest(), returning: UsersListResponse.self)
        }
        #expect(lines[1]["bytes_in"]?.integer == Int64(request.encoded().count))
        // A page with one user is that user behind a tag and a length, and so are the other answers.
        let sent = lines.map { $0["bytes_out"]?.integer ?? -1 }
        #expect(sent[0] > 20 && Set(sent).count == 1)
    }

    @Test func `A failed call says why, and a tenant only once the caller may ask for it`() async throws {
        let lines = try await Self.lines { server in
            let client = try server.connect()
            func fail(_ name: String, _ message: some Message, _ metadata: [OutgoingMetadata.Entry] = []) {
                #expect(throws: Failure.self) {
                    _ = try client.call(name, message, returning: UsersGetResponse.self, metadata: metadata)
                }
            }
            fail("postern.v1.Users/Get", UsersGetRequest(uid: "nobody"))
            fail("postern.v1.Users/Get", UsersGetRequest(tenantID: "nowhere", uid: "nobody"))
            fail(
                "postern.v1.Users/Get", UsersGetRequest(uid: "nobody"),
                [.init(key: "authorization", value: "Bearer pk_wrong"), .init(key: "traceparent", value: "00-x")])
            fail("made.up.Service/WithALongName", UsersGetRequest())
            fail("postern.v1.Users/Delete", UsersDeleteRequest(uid: "nobody"))
        }
        #expect(
            lines.map { $0["reason"]?.string } == [
                "USER_NOT_FOUND", "TENANT_NOT_FOUND", "CALLER_UNAUTHENTICATED", "UNKNOWN_METHOD", "USER_NOT_FOUND",
            ])
        #expect(lines.map { $0["tenant"]?.string } == ["", nil, nil, nil, ""])
        #expect(lines.map { $0["caller"] != nil } == [true, true, false, false, true])
        #expect(lines[3]["method"] == "_OTHER")
        #expect(lines.allSatisfy { $0["trace_id"] == nil })
        #expect(lines.allSatisfy { $0["bytes_out"]?.integer == 0 })
        // The ids that the server made.
        let ids = Set(lines.compactMap { $0["request_id"]?.string })
        #expect(ids.count == lines.count && ids.allSatisfy { $0.utf8.count == 25 })
    }

    @Test func `A stream has one line, when it ends`() async throws {
        let lines = try await Self.lines { server in
            let client = try server.connect()
            let request = GRPCServerReflectionRequest(messageRequest: .listServices(""))
            let stream = client.nextStream()
            try client.send(
                client.request(
                    "grpc.reflection.v1.ServerReflection/ServerReflectionInfo", request, stream: stream,
                    kind: .remoteOpen))
            _ = try client.readFrame()
            client.close()
        }
        #expect(lines.count == 1)
        #expect(lines[0]["method"] == "grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        #expect(["CANCELLED", "OK"].contains(lines[0]["status"]?.string))
        #expect(lines[0]["bytes_out"]?.integer ?? 0 > 100)
    }

    @Test func `No line holds a password, a token, a key or an address`() async throws {
        let password = "correct horse battery staple"
        let lines = try await Self.lines { server in
            let client = try server.connect()
            let made = try client.call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(email: "ada@example.com", password: Secret([UInt8](password.utf8))),
                returning: AccountsSignUpResponse.self)
            #expect(made.user != nil)
        }
        let text = lines.map { String(decoding: $0.serialized(), as: UTF8.self) }.joined()
        #expect(text.contains("Accounts/SignUp"))
        for secret in [password, "ada@", "127.0.0.1", "pk_", "Bearer", "eyJ"] { #expect(!text.contains(secret)) }
    }

    @Test func `One call in so many has a line, and says so`() async throws {
        let lines = try await Self.lines(oneIn: 10) { server in
            let client = try server.connect()
            for _ in 0..<1_000 {
                _ = try client.call(
                    "postern.v1.Project/Stats", ProjectStatsRequest(), returning: ProjectStatsResponse.self)
            }
        }
        // By chance: 100 on the average. Less than 30 or more than 200 does not happen.
        #expect((30...200).contains(lines.count))
        #expect(lines.allSatisfy { $0["one_in"]?.integer == 10 })
    }

    @Test func `Calls go on while nobody takes the lines`() async throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let sink = try LineSink(
            .descriptor(ends[1]), byteCountMax: 10_000, noteOfDropped: { _ in [] }, onTrouble: { _ in })
        try await withServer(configure: { $0.calls.sink = sink }) { server in
            let client = try server.connect()
            for _ in 0..<2_000 {
                _ = try client.call(
                    "postern.v1.Project/Stats", ProjectStatsRequest(), returning: ProjectStatsResponse.self)
            }
            #expect(sink.dropped.value > 500)
        }
        sink.close()
        signal(SIGPIPE, SIG_IGN)
        close(ends[0])
    }

    @Test func `A slow call gets a line in the log of the server, ten a second at most`() async throws {
        let lines = Mutex<[String]>([])
        let log = Log(level: .warning) { line in
            lines.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
        }
        try await withServer(configure: { $0.calls.slowFrom = .zero }, log: log) { server in
            let client = try server.connect()
            for _ in 0..<3 {
                _ = try? client.call(
                    "postern.v1.Users/Get", UsersGetRequest(uid: "nobody"), returning: UsersGetResponse.self)
            }
            #expect(server.instance.router.callLog.slowCalls.value == 3)
        }
        let said = lines.withLock { $0 }.filter { $0.contains(#""message":"slow call""#) }
        #expect((1...3).contains(said.count))
        for part in ["Users/Get", "commit_micros", "NOT_FOUND", #""suppressed":0"#] {
            #expect(said.allSatisfy { $0.contains(part) })
        }
        var rate = LineRate(linesPerSecondMax: 10)
        let second = Instant(nanoseconds: 5_000_000_000)
        #expect((0..<10).allSatisfy { _ in rate.admit(now: second) == 0 })
        #expect((0..<7).allSatisfy { _ in rate.admit(now: second) == nil })
        #expect(rate.admit(now: second.advanced(by: .seconds(1))) == 7)
    }

    @Test func `Ids of requests differ from start to start`() async throws {
        var ids: Set<String> = []
        for _ in 0..<2 {
            let lines = try await Self.lines { server in
                _ = try server.connect().call(
                    "postern.v1.Project/Stats", ProjectStatsRequest(), returning: ProjectStatsResponse.self)
            }
            ids.formUnion(lines.compactMap { $0["request_id"]?.string })
        }
        #expect(ids.count == 2)
    }
}
