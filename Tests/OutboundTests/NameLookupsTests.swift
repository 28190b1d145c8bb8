import Base
import Glibc
import Reactor
import Synchronization
import TestSupport
import Testing

@testable import Outbound

/// Lookups of names that take as long as a test wants, instead of the machine's resolver.
@Suite struct NameLookupsTests {
    /// A resolver that knows `known.test`, and keeps lookups of `silent.test` until it is opened.
    private final class Resolver: Sendable {
        let lookups = Counter()
        private let ended = Counter()
        private let gate = Semaphore()

        /// How many lookups of `silent.test` have ended.
        var endedCount: UInt64 { ended.value }

        func lookUp(_ name: String) -> [IPAddress] {
            lookups.add()
            if name == "known.test" { return [IPAddress("127.0.0.1")].compactMap { $0 } }
            guard name == "silent.test" else { return [] }
            gate.wait()
            gate.signal()
            ended.add()
            return [IPAddress("127.0.0.1")].compactMap { $0 }
        }

        func open() { gate.signal() }
    }

    private struct Scene {
        let resolver: Resolver
        let lookups: NameLookups
        let http: HTTPClient
        let smtp: SMTPClient
        let server: FakeHTTPServer

        init(countMax: Int, placeWaitMax: Duration, pool: WorkerPool, server: FakeHTTPServer) {
            let (pool, resolver) = (OutboundPool(pool), Resolver())
            self.resolver = resolver
            lookups = NameLookups(countMax: countMax, placeWaitMax: placeWaitMax) { resolver.lookUp($0) }
            http = HTTPClient(pool: pool, lookups: lookups)
            smtp = SMTPClient(pool: pool, lookups: lookups)
            self.server = server
        }

        func get(
            _ host: String, tenant: Text = "t", policy: NetworkPolicy = .local, timeout: Duration = .seconds(5)
        ) async throws -> HTTPAnswer {
            let scheme = policy.allowsHTTPToLoopback ? "http" : "https"
            let url = try #require(HTTPURL(Text("\(scheme)://\(host):\(server.port)/")))
            var request = HTTPRequest(url, policy: policy)
            request.timeout = timeout
            request.connectTimeout = max(request.connectTimeout, timeout)
            return try await http.send(request, tenant: tenant, deadline: .soon)
        }

        /// The same, once a place is free. That is a moment after a lookup has ended.
        func getOnceAPlaceIsFree(_ host: String) async throws -> HTTPAnswer {
            var answer: HTTPAnswer?
            try await until("a place is free") {
                do { answer = try await get(host) } catch OutboundError.overloaded {}
                return answer != nil
            }
            return try #require(answer)
        }

        /// The error of a mail that is sent through `host`.
        func mailError(_ host: Text, within limit: Duration = .seconds(20)) async -> (any Error)? {
            let mailServer = SMTPServer(
                host: host, port: 1, security: .none, username: .empty, password: .empty,
                policy: .ownServers(allowPrivateAddresses: true))
            do {
                try await smtp.send(
                    Secret(Array("Subject: hello\r\n\r\nhello\r\n".utf8)), from: "a@example.com", to: "b@example.com",
                    through: mailServer, tenant: "t", deadline: .now.advanced(by: limit))
                return nil
            } catch {
                return error
            }
        }
    }

    /// A pool of one thread, if nothing else is said.
    private func run(
        countMax: Int = 64, workers: Int = 1, placeWaitMax: Duration = .milliseconds(100),
        _ body: (Scene) async throws -> Void
    ) async throws {
        let pool = WorkerPool(name: "outbound", workers: workers, queueMax: 16, queueMaxPerTenant: 16)
        let server = FakeHTTPServer { request in
            .response(HTTPResponse(body: Array((request.fields["host"] ?? "").utf8)))
        }
        let scene = Scene(countMax: countMax, placeWaitMax: placeWaitMax, pool: pool, server: server)
        defer {
            scene.resolver.open()
            end(pool, server)
        }
        try await body(scene)
    }

    /// Closing may block a test's thread for a moment.
    private func end(_ pool: WorkerPool, _ server: FakeHTTPServer) {
        server.close()
        pool.close()
    }

    @Test func `A name is looked up for a new connection, and not for one that is open`() async throws {
        try await run { scene in
            for _ in 0..<3 {
                let answer = try await scene.get("known.test")
                #expect(String(decoding: answer.body, as: UTF8.self) == "known.test:\(scene.server.port)")
            }
            #expect(scene.resolver.lookups.value == 1 && scene.server.connectionCount == 1)
            // Another policy has connections of its own.
            let wide = NetworkPolicy(allowsHTTPToLoopback: true, allowsPrivateAddresses: true)
            #expect(try await scene.get("known.test", policy: wide).status == 200)
            #expect(scene.resolver.lookups.value == 2 && scene.server.connectionCount == 2)
        }
    }

    @Test(arguments: ["127.0.0.1", "localhost", "LocalHost", "a.localhost."])
    func `No resolver is asked for an address or for this machine`(_ host: String) async throws {
        try await run { scene in
            let answer = try await scene.get(host)
            #expect(answer.status == 200)
            #expect(scene.resolver.lookups.value == 0)
        }
    }

    @Test func `The address that is found has to be permitted`() async throws {
        try await run { scene in
            let error = await outboundError { _ = try await scene.get("known.test", policy: NetworkPolicy()) }
            #expect(error == .addressNotAllowed)
            #expect(scene.server.connectionCount == 0)
        }
    }

    /// Both names are reached by one handle, one after the other.
    @Test func `The addresses of one name serve no other`() async throws {
        try await run { scene in
            let answer = try await scene.get("known.test")
            #expect(answer.status == 200)
            #expect(await outboundError { _ = try await scene.get("unknown.test") } == .cannotResolve)
            #expect(scene.resolver.lookups.value == 2)
            #expect(await scene.mailError("unknown.test") as? SMTPError == .transient(code: 0, .cannotResolve))
        }
    }

    /// The second request goes out over an open connection, which the server cuts after a while. libcurl then makes
    /// another connection.
    @Test func `A lookup has only the time that its request has left`() throws {
        let server = FakeHTTPServer { request in
            guard request.path == "/cut" else { return .response(HTTPResponse(body: [])) }
            usleep(200_000)
            return .raw([])
        }
        defer { server.close() }
        let (handle, limit) = (CurlHandle(), Duration.seconds(20))
        var given: [Duration] = []
        for path in ["/", "/cut"] {
            let url = try #require(HTTPURL(Text("http://known.test:\(server.port)\(path)")))
            var request = HTTPRequest(url, policy: .local)
            (request.connectTimeout, request.timeout) = (limit, limit)
            let exchange = HTTPExchange(request, cancelFlag: CancelFlag())
            let answer = try? exchange.perform(
                on: handle, certificateFile: nil, deadline: .now.advanced(by: .seconds(60))
            ) { limit in
                given.append(limit)
                return [IPAddress("127.0.0.1")].compactMap { $0 }
            }
            #expect((answer != nil) == (path == "/"))
        }
        #expect(given.count == 2)
        #expect(given.last.map { $0 <= limit - .milliseconds(200) } == true)
    }

    /// The resolver answers only when the test is over, and there is one thread for requests.
    @Test func `A lookup that hangs keeps no thread beyond the time of its request`() async throws {
        try await run { scene in
            let error = await outboundError {
                _ = try await scene.get("silent.test", timeout: .milliseconds(300))
            }
            #expect(error == .timedOut)
            let mailError = await scene.mailError("silent.test", within: .milliseconds(300))
            #expect(mailError as? SMTPError == .transient(code: 0, .timedOut))
            #expect(try await scene.get("known.test").status == 200)
            try await until { scene.resolver.lookups.value == 3 }
            #expect(scene.resolver.endedCount == 0)
        }
    }

    @Test func `Lookups that were left behind are bounded, and their places are free when they end`() async throws {
        try await run(countMax: 4) { scene in
            func look(_ tenant: Text) async -> OutboundError? {
                await outboundError {
                    _ = try await scene.get("silent.test", tenant: tenant, timeout: .milliseconds(300))
                }
            }
            // A tenant begins another one only while it has fewer than half of those that are free.
            for (tenant, error) in [
                ("a", .timedOut), ("a", .timedOut), ("a", .overloaded), ("b", .timedOut), ("c", .timedOut),
                ("d", .overloaded),
            ] as [(Text, OutboundError)] {
                #expect(await look(tenant) == error)
            }
            try await until { scene.resolver.lookups.value == 4 }
            #expect(await scene.mailError("known.test") as? OutboundError == .overloaded)
            // What needs no lookup goes on.
            #expect(try await scene.get("127.0.0.1", tenant: "d").status == 200)
            scene.resolver.open()
            try await until { scene.resolver.endedCount == 4 }
            #expect(try await scene.getOnceAPlaceIsFree("known.test").status == 200)
        }
    }

    @Test func `A lookup waits for its turn, and one that waited in vain is not made`() async throws {
        try await run(countMax: 2, workers: 4, placeWaitMax: .seconds(60)) { scene in
            for tenant in ["a", "b"] as [Text] {
                let error = await outboundError {
                    _ = try await scene.get("silent.test", tenant: tenant, timeout: .milliseconds(300))
                }
                #expect(error == .timedOut)
            }
            let inVain = await outboundError {
                _ = try await scene.get("known.test", tenant: "c", timeout: .milliseconds(300))
            }
            #expect(inVain == .overloaded && scene.lookups.waitingCount == 0)
            let waiting = Task { try await scene.get("known.test", tenant: "c", timeout: .seconds(20)) }
            try await until { scene.lookups.waitingCount == 1 }
            scene.resolver.open()
            #expect(try await waiting.value.status == 200)
            #expect(scene.resolver.lookups.value == 3)
        }
    }
}
