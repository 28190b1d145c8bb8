import Base
import Identity
import Messages
import Reactor
import Service
import TestSupport
import Testing

/// The pages of the side port, asked for on the RPC port over HTTP/2.
@Suite struct HTTP2PageTests {
    /// What curl prints for this path: head and body.
    private static func ask(
        _ server: TestServer, _ path: String, _ arguments: [String] = [], key: Secret? = nil
    ) throws -> (head: String, body: String) {
        let output = "\(server.directory)/page"
        let credential = key.map { key in
            ["-H", key.withBytes { "authorization: Bearer " + String(decoding: $0, as: UTF8.self) }]
        }
        let curl = try ChildProcess(
            "curl",
            ["-sS", "-i", "--max-time", "20", "--http2-prior-knowledge"] + (credential ?? []) + arguments
                + ["http://127.0.0.1:\(server.port)\(path)"], output: output)
        #expect(curl.wait() == 0, "\(path)")
        let said = String(decoding: readFile(output) ?? [], as: UTF8.self)
        let end = try #require(said.firstRange(of: "\r\n\r\n"))
        return (String(said[..<end.lowerBound]).lowercased(), String(said[end.upperBound...]))
    }

    @Test func `The RPC port answers as the side port does`() async throws {
        try await withServer { server in
            for (path, route) in server.instance.sidePortRoutes where path != "/metrics" {
                let page = route()
                let got = try Self.ask(server, "\(path)?x=1")
                #expect(got.head.hasPrefix("http/2 \(page.status)"), "\(got.head)")
                #expect(got.body == String(decoding: page.body, as: UTF8.self))
                #expect(got.head.contains("content-type: \(page.contentType.lowercased())"))
                for field in page.fields {
                    #expect(got.head.contains("\(field.name): \(field.value)".lowercased()))
                }
                let head = try Self.ask(server, path.string, ["-I"])
                #expect(head.head.contains("content-length: \(page.body.count)") && head.body.isEmpty)
            }
            #expect(server.instance.sidePortRoutes.count == 7)
        }
    }

    @Test func `The metrics are for project-admins`() async throws {
        try await withServer { server in
            let made: ProjectCreateApiKeyResponse = try server.connect().call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(role: .tenantAdmin, scope: Scope(tenants: .all(true))),
                returning: ProjectCreateApiKeyResponse.self)
            let nobody = try Self.ask(server, "/metrics")
            #expect(nobody.head.hasPrefix("http/2 401") && nobody.head.contains("www-authenticate: bearer"))
            let wrong = try Self.ask(server, "/metrics", ["-H", "authorization: Bearer pk_nonsense"])
            #expect(wrong.head.hasPrefix("http/2 401"))
            let other = try Self.ask(server, "/metrics", key: made.secretKey)
            #expect(other.head.hasPrefix("http/2 403"))
            for answer in [nobody, wrong, other] { #expect(!answer.body.contains("postern_connections")) }
            let elsewhere: ProjectCreateApiKeyResponse = try server.connect().call(
                "postern.v1.Project/CreateApiKey",
                ProjectCreateApiKeyRequest(
                    role: .projectAdmin, scope: Scope(tenants: .all(true)), allowedAddresses: ["192.0.2.0/24"]))
            #expect(try Self.ask(server, "/metrics", key: elsewhere.secretKey).head.hasPrefix("http/2 403"))
            // The refusals are logged: otherwise keys could be tried here without a trace.
            let log = try RawStream<AuditWatchEventsResponse>(
                server, "postern.v1.Audit/WatchEvents",
                AuditWatchEventsRequest(afterSequence: -1, filter: EventFilter(kinds: [.callDenied])))
            #expect(try log.next()?.event?.detail == "/metrics INSUFFICIENT_PERMISSION")
            #expect(try log.next()?.event?.detail == "/metrics ADDRESS_NOT_ALLOWED")
            let admin = try Self.ask(server, "/metrics", key: server.adminKey)
            #expect(admin.head.hasPrefix("http/2 200") && admin.body.contains("postern_connections_open"))
        }
    }

    @Test func `Everything else stays as it was`() async throws {
        try await withServer { server in
            let cases: [(String, [String], Int)] = [
                ("/", [], 405), ("/healthz/", [], 405), ("/postern.v1.Users/Get", [], 405),
                ("/healthz", ["-X", "POST"], 415), ("/healthz", ["-X", "DELETE"], 405),
            ]
            for (path, arguments, status) in cases {
                let head = try Self.ask(server, path, arguments).head
                #expect(head.hasPrefix("http/2 \(status)"), "\(path) \(arguments)")
            }
        }
    }

    // MARK: By hand

    private typealias Frame = RawHTTP2.Frame

    private static func get(
        _ stream: UInt32, _ path: String = "/healthz", _ more: [(String, String)] = [],
        flags: UInt8 = RawHTTP2.endHeaders | RawHTTP2.endStream
    ) -> Frame {
        let fields = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "localhost")] + more
        return Frame(type: RawHTTP2.headers, flags: flags, stream: stream, payload: RawHTTP2.block(fields))
    }

    /// The byte of HPACK's table for these statuses (RFC 7541, Appendix A).
    private static let (ok, badRequest): (UInt8, UInt8) = (0x88, 0x8C)

    @Test func `A page is bounded as a call is`() async throws {
        try await withServer(configure: { $0.limits.waitingBytesMaxUnauthenticated = 300 }) { server in
            // There is no window: bodies wait, and above the limit the server makes no further page.
            let raw = try RawHTTP2(server, settings: [(4, 0)])
            let path = "/.well-known/openid-configuration"
            let byteCount = try #require(server.instance.sidePortRoutes[Text(path)]?().body.count)
            #expect(byteCount > 150 && byteCount < 2_000)
            try raw.send([1, 3, 5, 7].map { Self.get($0, path) })
            // The first answer to a PING goes ahead of the pages that came with it, the second one follows them.
            let ping = Frame(type: RawHTTP2.ping, payload: Array(repeating: 7, count: 8))
            try raw.send(ping)
            var begun = 0
            while true {
                let frame = try raw.readFrame()
                if frame.type == RawHTTP2.ping { break }
                if frame.type == RawHTTP2.headers { begun += 1 }
            }
            try raw.send(ping)
            while true {
                let frame = try raw.readFrame()
                if frame.type == RawHTTP2.ping { break }
                #expect(frame.type != RawHTTP2.data)
                if frame.type == RawHTTP2.headers { begun += 1 }
            }
            #expect(begun == 300 / byteCount + 1)
            for stream: UInt32 in [1, 3, 5, 7] {
                try raw.send(
                    Frame(type: RawHTTP2.windowUpdate, stream: stream, payload: RawHTTP2.bigEndian(9_000, 4)))
            }
            var ended: [UInt32: Int] = [:]
            while ended.count < 4 {
                let frame = try raw.readFrame()
                guard frame.type == RawHTTP2.data else { continue }
                #expect(frame.flags & RawHTTP2.endStream != 0)
                ended[frame.stream] = frame.payload.count
            }
            #expect(ended.values.allSatisfy { $0 == byteCount })
        }
    }

    @Test func `Odd requests for pages harm nobody`() async throws {
        try await withServer { server in
            let raw = try RawHTTP2(server)
            // A request with a body that never ends.
            try raw.send(Self.get(1, flags: RawHTTP2.endHeaders), RawHTTP2.message(1, flags: 0))
            var answer = try raw.readAnswer(1)
            #expect(answer.first?.payload.first == Self.ok)
            #expect(try raw.read(RawHTTP2.reset, stream: 1).numbers == [0])
            // A malformed field that only calls have, and more fields than there may be.
            try raw.send(Self.get(3, "/healthz", [("grpc-timeout", "soon")]))
            #expect(try raw.readAnswer(3).first?.payload.first == Self.badRequest)
            try raw.send(Self.get(5, "/healthz", (0..<80).map { ("x-\($0)", "y") }))
            answer = try raw.readAnswer(5)
            #expect(answer.count == 1 && answer.first?.payload.first != Self.ok)
            // Reset before its turn.
            try raw.send(
                Self.get(7), Frame(type: RawHTTP2.reset, stream: 7, payload: RawHTTP2.bigEndian(RawHTTP2.cancel, 4)),
                Self.get(9))
            #expect(try raw.readAnswer(9).last?.flags == RawHTTP2.endStream)
        }
    }
}
