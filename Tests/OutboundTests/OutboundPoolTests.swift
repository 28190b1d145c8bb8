import Base
import Outbound
import Reactor
import Synchronization
import TestSupport
import Testing

/// How many threads of the pool one tenant can hold, by whatever means.
@Suite struct OutboundPoolTests {
    /// Holds the works that wait at it until it is opened.
    private final class Gate: Sendable {
        private let semaphore = Semaphore()
        private let entered = Atomic(0)

        var enteredCount: Int { entered.load(ordering: .relaxed) }

        func pass() {
            entered.add(1, ordering: .relaxed)
            semaphore.wait()
            semaphore.signal()
        }

        func open() { semaphore.signal() }
    }

    /// The sources in the order in which their works ran.
    private final class Order: Sendable {
        private let list = Mutex<[Text]>([])
        var sources: [Text] { list.withLock { $0 } }
        func append(_ source: Text) { list.withLock { $0.append(source) } }
    }

    private struct Scene {
        let http: HTTPClient
        let smtp: SMTPClient
        let pool: WorkerPool
        let server: FakeHTTPServer
        let gate = Gate()

        func get(_ path: String = "/", tenant: Text = "t", deadline: Instant = .soon) async throws -> HTTPAnswer {
            let url = try #require(HTTPURL(Text(server.url + path)))
            return try await http.send(HTTPRequest(url, policy: .local), tenant: tenant, deadline: deadline)
        }

        /// Sends a mail to `port`, by default one where nobody listens.
        func mail(port: UInt16 = 1, tenant: Text = "t") async throws {
            let mailServer = SMTPServer(
                host: "127.0.0.1", port: port, security: .none, username: .empty, password: .empty,
                policy: .ownServers(allowPrivateAddresses: true))
            try await smtp.send(
                Secret(Array("Subject: hello\r\n\r\nhello\r\n".utf8)), from: "a@example.com", to: "b@example.com",
                through: mailServer, tenant: tenant, deadline: .soon)
        }

        /// Work that holds a thread until the gate is opened, whether anybody waits for it or not.
        func work(tenant: Text = "t", deadline: Instant = .soon) -> Task<Void, any Error> {
            Task { try await http.compute(tenant: tenant, deadline: deadline) { [gate] in gate.pass() } }
        }

        /// Asks until the tenant has a place again. There may be requests that were given up but have not ended.
        func answerOnceThereIsAPlace(tenant: Text = "t") async throws -> HTTPAnswer {
            var answer: HTTPAnswer?
            try await until("the tenant has a place again") {
                do { answer = try await get(tenant: tenant) } catch OutboundError.overloaded {}
                return answer != nil
            }
            return try #require(answer)
        }
    }

    /// A path "/silent" is never answered.
    private func run(
        threads count: Int, of workers: Int = 4, waitMax: Duration = .milliseconds(50),
        _ body: (Scene) async throws -> Void
    ) async throws {
        let pool = WorkerPool(
            name: "outbound", workers: workers, queueMax: 16, queueMaxPerTenant: 16, workersPerTenantMax: count)
        let server = FakeHTTPServer { $0.path == "/silent" ? .silence : .response(HTTPResponse(body: [])) }
        let outbound = OutboundPool(pool, waitMax: waitMax)
        let scene = Scene(
            http: HTTPClient(pool: outbound), smtp: SMTPClient(pool: outbound), pool: pool, server: server)
        defer {
            scene.gate.open()
            end(pool, server)
        }
        try await body(scene)
    }

    /// Closing may block a test's thread for a moment.
    private func end(_ pool: WorkerPool, _ server: FakeHTTPServer) {
        server.close()
        pool.close()
    }

    private func cancel(_ tasks: [Task<Void, any Error>]) async {
        for task in tasks {
            task.cancel()
            #expect(await task.result.error is CancellationError)
        }
    }

    /// Expects that the tenant can send neither a request nor a mail, because no thread becomes free in time.
    private func expectNoPlace(_ scene: Scene) async {
        let request = Task { try await scene.get() }
        #expect(await request.result.error as? OutboundError == .overloaded)
        #expect(await mailError(scene) as? OutboundError == .overloaded)
    }

    private func mailError(_ scene: Scene, tenant: Text = "t") async -> (any Error)? {
        await Task { try await scene.mail(tenant: tenant) }.result.error
    }

    @Test func `One tenant does not take every thread`() async throws {
        try await run(threads: 1) { scene in
            let slow = Task { _ = try await scene.get("/silent") }
            try await until { scene.server.requestCount("/silent") == 1 }
            await expectNoPlace(scene)
            #expect(try await scene.get(tenant: "other").status == 200)
            await cancel([slow])
            #expect(try await scene.answerOnceThereIsAPlace().status == 200)
        }
    }

    @Test func `Work that holds its thread keeps it when nobody waits for it any more`() async throws {
        try await run(threads: 1) { scene in
            let given = scene.work()
            try await until { scene.gate.enteredCount == 1 }
            await cancel([given])
            await expectNoPlace(scene)
            #expect(try await scene.get(tenant: "other").status == 200)
            scene.gate.open()
            #expect(try await scene.answerOnceThereIsAPlace().status == 200)
        }
    }

    @Test func `A mail takes a thread as a request does`() async throws {
        try await run(threads: 1) { scene in
            // The server waits for a request, and the client for the greeting of a mail server.
            let mail = Task { try await scene.mail(port: scene.server.port) }
            try await until { scene.server.connectionCount == 1 }
            await expectNoPlace(scene)
            #expect(await mailError(scene, tenant: "other") is SMTPError)
            await cancel([mail])
            // The transfer goes on without its caller.
            await expectNoPlace(scene)
        }
    }

    @Test func `Mails that hang leave half of the threads to requests`() async throws {
        try await run(threads: 8) { scene in
            // The server waits for a request, and each client for the greeting of a mail server.
            let mails = (0..<4).map { number in
                Task { try await scene.mail(port: scene.server.port, tenant: Text("mail-\(number)")) }
            }
            try await until { scene.server.connectionCount == 2 }
            #expect(try await scene.get(tenant: "other").status == 200)
            for mail in mails { mail.cancel() }
            for mail in mails { _ = await mail.result }
        }
    }

    @Test func `The thread is free again when the answer comes`() async throws {
        try await run(threads: 1) { scene in
            for _ in 0..<200 {
                _ = try await scene.get()
                #expect(await mailError(scene) is SMTPError)
                let failing = Task {
                    try await scene.http.compute(tenant: "t", deadline: .soon) { throw OutboundError.tooLarge }
                }
                #expect(await failing.result.error as? OutboundError == .tooLarge)
            }
        }
    }

    @Test func `Further requests wait until a thread is free`() async throws {
        try await run(threads: 1, waitMax: .seconds(20)) { scene in
            let holding = scene.work()
            try await until { scene.gate.enteredCount == 1 }
            let waiting = (0..<5).map { _ in Task { try await scene.get() } }
            try await until { scene.pool.counts.queued == 5 }
            scene.gate.open()
            for task in waiting { #expect(try await task.value.status == 200) }
            try await holding.value
        }
    }

    @Test func `Work that waits in vain is refused, or is over with its caller's time`() async throws {
        try await run(threads: 1, waitMax: .seconds(20)) { scene in
            let holding = scene.work()
            try await until { scene.gate.enteredCount == 1 }
            let late = scene.work(deadline: .now.advanced(by: .milliseconds(1)))
            #expect((await late.result.error as? Failure)?.reason == "DEADLINE_EXCEEDED")
            await cancel([scene.work()])
            scene.gate.open()
            try await holding.value
            #expect(scene.gate.enteredCount == 1)
        }
    }

    /// One address that has all threads of its tenant, and more waiting, keeps no other one out.
    @Test func `Sources share the threads of their tenant`() async throws {
        try await run(threads: 1, waitMax: .seconds(20)) { scene in
            let order = Order()
            func work(_ source: Text) -> Task<Void, any Error> {
                Task { [http = scene.http] in
                    try await http.compute(tenant: "t", source: source, deadline: .soon) { order.append(source) }
                }
            }
            let holding = scene.work()
            try await until { scene.gate.enteredCount == 1 }
            // All the places that one tenant may have of the pool's sixteen.
            var tasks = (0..<6).map { _ in work("flood") }
            try await until { scene.pool.counts.queued == 6 }
            for count in 1...2 {
                tasks.append(work("calm"))
                // The flood gives up its last work.
                try await until { scene.pool.counts.refused == UInt64(count) }
            }
            scene.gate.open()
            try await holding.value
            var refusedCount = 0
            for task in tasks where await task.result.error as? OutboundError == .overloaded { refusedCount += 1 }
            #expect(refusedCount == 2)
            #expect(order.sources.prefix(4) == ["flood", "calm", "flood", "calm"])
        }
    }
}

extension Result {
    fileprivate var error: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
