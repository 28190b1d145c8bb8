import Base
import Glibc
import Outbound
import Reactor
import TestSupport
import Testing

@Suite struct HTTPClientTests {
    private func url(_ server: FakeHTTPServer, _ path: String = "/") throws -> HTTPURL {
        try #require(HTTPURL(Text(server.url + path)))
    }

    private func get(
        _ client: HTTPClient, _ server: FakeHTTPServer, _ change: (inout HTTPRequest) -> Void = { _ in }
    ) async throws -> HTTPAnswer {
        var request = HTTPRequest(try url(server), policy: .local)
        change(&request)
        return try await client.send(request, tenant: "t", deadline: .soon)
    }

    @Test func anAnswerComesWithStatusTypeAndBody() async throws {
        let handler: FakeHTTPServer.Handler = { request in
            let body = "\(request.method) \(request.path) \(request.fields["x-one"] ?? "")"
            return .response(
                HTTPResponse(
                    status: 404, contentType: "Application/JSON; charset=utf-8",
                    fields: [("Cache-Control", "public, Max-Age=77, immutable")], body: Array(body.utf8)))
        }
        try await withClient(handler) { client, server in
            let answer = try await get(client, server) { $0.fields = [.init("X-One", "1")] }
            #expect(answer.status == 404 && !answer.isSuccess)
            #expect(answer.contentType == "application/json")
            #expect(answer.maxAge == .seconds(77))
            #expect(String(decoding: answer.body, as: UTF8.self) == "GET / 1")
        }
    }

    @Test func `A request carries the trace of its call, and no other`() async throws {
        let handler: FakeHTTPServer.Handler = { request in
            .response(HTTPResponse(body: Array((request.fields["traceparent"] ?? "none").utf8)))
        }
        try await withClient(handler) { client, server in
            let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            let trace = CallTrace(parent: [UInt8](header.utf8).withUnsafeBytes { TraceParent($0) })
            let traced = try await CallTrace.$current.withValue(trace) { try await get(client, server) }
            #expect(String(decoding: traced.body, as: UTF8.self) == header)
            #expect(trace.worked > 0)
            let untraced = try await CallTrace.$current.withValue(CallTrace(parent: nil)) {
                try await get(client, server)
            }
            #expect(String(decoding: untraced.body, as: UTF8.self) == "none")
            #expect(String(decoding: try await get(client, server).body, as: UTF8.self) == "none")
        }
    }

    @Test func aFormIsPostedEncoded() async throws {
        let handler: FakeHTTPServer.Handler = { request in
            let form = request.form.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: ";")
            let type = request.fields["content-type"] ?? ""
            return .response(HTTPResponse(body: Array("\(request.method) \(type) \(form)".utf8)))
        }
        try await withClient(handler) { client, server in
            let request = HTTPRequest.form(
                try url(server), [("a b", Secret("1&2=3+4%")), ("é", Secret("\r\nX: y"))], policy: .local)
            let answer = try await client.send(request, tenant: "t", deadline: .soon)
            let expected = "POST application/x-www-form-urlencoded a b=1&2=3+4%;é=\r\nX: y"
            #expect(String(decoding: answer.body, as: UTF8.self) == expected)
        }
    }

    @Test func connectionsAreUsedAgain() async throws {
        try await withClient { client, server in
            for _ in 0..<5 { _ = try await get(client, server) }
            #expect(server.connectionCount == 1)
            #expect(server.requestCount("/") == 5)
        }
    }

    @Test func connectionsAreNotSharedAcrossPolicies() async throws {
        try await withClient { client, server in
            _ = try await get(client, server)
            _ = try await get(client, server) { $0.policy.allowsPrivateAddresses = true }
            #expect(server.connectionCount == 2)
        }
    }

    @Test func plainHTTPIsRefusedUnlessTheRequestAllowsIt() async throws {
        try await withClient { client, server in
            for policy in [NetworkPolicy(), NetworkPolicy(allowsPrivateAddresses: true)] {
                let error = await outboundError { _ = try await get(client, server) { $0.policy = policy } }
                #expect(error == .addressNotAllowed)
            }
            #expect(server.connectionCount == 0)
        }
    }

    /// The name is judged by the address that it leads to, not by its spelling.
    @Test(arguments: ["https://localhost", "https://127.0.0.1", "https://[::1]", "https://0x7f000001", "https://127.1"])
    func aNameThatLeadsToLoopbackIsRefusedBeforeConnecting(_ base: String) async throws {
        try await withClient { client, server in
            let request = HTTPRequest(
                try #require(HTTPURL(Text("\(base):\(server.port)/"))), policy: NetworkPolicy())
            let error = await outboundError { _ = try await client.send(request, tenant: "t", deadline: .soon) }
            #expect(error == .addressNotAllowed)
            #expect(server.connectionCount == 0)
        }
    }

    @Test(arguments: ["http://8.8.8.8/", "http://10.0.0.1/", "http://169.254.169.254/latest/meta-data"])
    func plainHTTPLeavesThisMachineNever(_ text: String) async throws {
        try await withClient { client, _ in
            let policy = NetworkPolicy(allowsHTTPToLoopback: true, allowsPrivateAddresses: true)
            let request = HTTPRequest(try #require(HTTPURL(Text(text))), policy: policy)
            let error = await outboundError { _ = try await client.send(request, tenant: "t", deadline: .soon) }
            #expect(error == .addressNotAllowed)
        }
    }

    @Test func theMetadataAddressIsRefusedWhateverIsAllowed() async throws {
        try await withClient { client, _ in
            let policy = NetworkPolicy(allowsPrivateAddresses: true)
            let request = HTTPRequest(try #require(HTTPURL("https://169.254.169.254/")), policy: policy)
            let error = await outboundError { _ = try await client.send(request, tenant: "t", deadline: .soon) }
            #expect(error == .addressNotAllowed)
        }
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func aRedirectionIsAnError(status: Int) async throws {
        let handler: FakeHTTPServer.Handler = { _ in
            .response(HTTPResponse(status: status, fields: [("Location", "/again")], body: []))
        }
        try await withClient(handler) { client, server in
            #expect(await outboundError { _ = try await get(client, server) } == .redirected)
            #expect(server.requestCount("/again") == 0)
        }
    }

    @Test func aBodyAtTheLimitIsTakenAndOneAboveGivenUp() async throws {
        let handler: FakeHTTPServer.Handler = { _ in .response(HTTPResponse(body: [UInt8](repeating: 1, count: 1_000)))
        }
        try await withClient(handler) { client, server in
            let answer = try await get(client, server) { $0.bodyByteCountMax = 1_000 }
            #expect(answer.body.count == 1_000)
            let error = await outboundError { _ = try await get(client, server) { $0.bodyByteCountMax = 999 } }
            #expect(error == .tooLarge)
        }
    }

    @Test func `Where no body is needed, a status of success is an answer whatever follows it`() async throws {
        func cut(_ status: Int) -> FakeHTTPServer.Reply {
            .raw(Array("HTTP/1.1 \(status) Status\r\nContent-Length: 5\r\n\r\nab".utf8))
        }
        func status(_ reply: FakeHTTPServer.Reply) async throws -> Int {
            try await withClient({ _ in reply }) { client, server in
                try await get(client, server) {
                    $0.isBodyNeeded = false
                    $0.timeout = .seconds(2)
                }.status
            }
        }
        let answers: [(reply: FakeHTTPServer.Reply, status: Int)] = [
            (cut(202), 202), (.flood(1 << 20), 200), (.silence, 200),
        ]
        for answer in answers {
            let found = try await status(answer.reply)
            #expect(found == answer.status)
        }
        #expect(await outboundError { _ = try await status(cut(503)) } == .broken)
    }

    @Test func `A status is kept where the request wants it, whatever becomes of the body`() async throws {
        func answer(_ reply: FakeHTTPServer.Reply) async throws -> HTTPAnswer {
            try await withClient({ _ in reply }) { client, server in
                try await get(client, server) {
                    $0.keepsStatus = true
                    $0.bodyByteCountMax = 1_000
                    $0.timeout = .seconds(1)
                }
            }
        }
        func raw(_ head: String) -> FakeHTTPServer.Reply { .raw(Array("HTTP/1.1 \(head)".utf8)) }
        let long = HTTPResponse(status: 500, body: [UInt8](repeating: 1, count: 1_001))
        let cases: [(reply: FakeHTTPServer.Reply, status: Int, error: OutboundError)] = [
            (.silence, 200, .timedOut), (.flood(1 << 20), 200, .tooLarge), (.response(long), 500, .tooLarge),
            (raw("200 OK\r\nContent-Length: 5\r\n\r\nab"), 200, .broken),
            (raw("503 No\r\nContent-Length: 5\r\n\r\nab"), 503, .broken),
            (raw("200 OK\r\n" + String(repeating: "X: y\r\n", count: 100_000) + "\r\n"), 200, .tooLarge),
        ]
        for expected in cases {
            let found = try await answer(expected.reply)
            #expect(found.status == expected.status && found.bodyError == expected.error && found.body.isEmpty)
        }
        let whole = try await answer(.response(HTTPResponse(body: [1, 2])))
        #expect(whole.bodyError == nil && whole.body == [1, 2])
        // No status came, or one that only announces another.
        #expect(await outboundError { _ = try await answer(.nothing) } == .timedOut)
        #expect(await outboundError { _ = try await answer(raw("100 Continue\r\n\r\n")) } == .broken)
        let redirection = raw("302 Found\r\nLocation: /\r\nContent-Length: 5\r\n\r\nab")
        #expect(await outboundError { _ = try await answer(redirection) } == .redirected)
    }

    @Test func aBodyWithoutLengthIsGivenUpWhileItComes() async throws {
        try await withClient({ _ in .flood(1 << 30) }) { client, server in
            #expect(await outboundError { _ = try await get(client, server) } == .tooLarge)
        }
    }

    @Test func aHeadWithoutEndIsGivenUp() async throws {
        let handler: FakeHTTPServer.Handler = { _ in
            .raw(Array(("HTTP/1.1 200 OK\r\n" + String(repeating: "X: y\r\n", count: 100_000) + "\r\n").utf8))
        }
        try await withClient(handler) { client, server in
            #expect(await outboundError { _ = try await get(client, server) } == .tooLarge)
        }
    }

    @Test func aSilentServerIsGivenUp() async throws {
        try await withClient({ _ in .silence }) { client, server in
            let error = await outboundError { _ = try await get(client, server) { $0.timeout = .milliseconds(100) } }
            #expect(error == .timedOut)
        }
    }

    @Test func theCallersDeadlineCutsTheTimeLimit() async throws {
        try await withClient({ _ in .silence }) { client, server in
            var slow = HTTPRequest(try url(server), policy: .local)
            slow.timeout = .seconds(15)
            let request = slow
            let patient = Task { try await client.send(request, tenant: "t", deadline: .soon) }
            try await until("the first request is made") { server.requestCount("/") == 1 }
            let deadline = Instant.now.advanced(by: .seconds(1))
            let error = await outboundError { _ = try await client.send(request, tenant: "t", deadline: deadline) }
            #expect(error == .timedOut)
            // The first request has the whole time limit, and still waits.
            patient.cancel()
            await #expect(throws: CancellationError.self) { try await patient.value }
        }
    }

    @Test func aCancelledTaskDoesNotWaitForTheAnswer() async throws {
        try await withClient({ _ in .silence }) { client, server in
            let request = HTTPRequest(try url(server), policy: .local)
            let task = Task { try await client.send(request, tenant: "t", deadline: .soon) }
            try await until("the request is made") { server.requestCount("/") == 1 }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }

    @Test func nobodyListeningIsAnError() async throws {
        try await withClient { client, server in
            server.close()
            #expect(await outboundError { _ = try await get(client, server) } == .cannotConnect)
        }
    }

    @Test(arguments: ["", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "SSH-2.0-OpenSSH\r\n"])
    func whatIsNoHTTPIsBroken(_ text: String) async throws {
        try await withClient({ _ in .raw(Array(text.utf8)) }) { client, server in
            #expect(await outboundError { _ = try await get(client, server) } == .broken)
        }
    }

    @Test(arguments: ["a\r\nb: c", "a\nb", "\u{7F}", "é", ""])
    func aFieldThatCannotBeSentIsRefused(_ value: String) async throws {
        try await withClient { client, server in
            let error = await outboundError {
                _ = try await get(client, server) { $0.fields = [.init("Authorization", Text(value))] }
            }
            #expect(error == .malformedRequest)
            #expect(server.connectionCount == 0)
        }
    }

    @Test func aProxyInTheEnvironmentIsNotAsked() async throws {
        let names = ["http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
        for name in names { setenv(name, "http://127.0.0.1:1", 1) }
        defer { for name in names { unsetenv(name) } }
        try await withClient { client, server in
            let answer = try await get(client, server)
            #expect(answer.status == 200)
        }
    }
}
