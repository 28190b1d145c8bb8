import Base
import Outbound
import Reactor
import TestSupport
import Testing

/// Mails to a server that is slow, and mails while this server stops.
@Suite struct SMTPClientTests {
    private struct Scene {
        let smtp: SMTPClient
        var host: Text = "127.0.0.1"
        let port: UInt16

        /// The error of a mail; nil if the server took it.
        func mailError() async -> (any Error)? {
            let server = SMTPServer(
                host: host, port: port, security: .none, username: .empty, password: .empty,
                policy: .ownServers(allowPrivateAddresses: true))
            do {
                try await smtp.send(
                    Secret(Array("Subject: hello\r\n\r\nhello\r\n".utf8)), from: "a@example.com",
                    to: "b@example.com", through: server, tenant: "t", deadline: .now.advanced(by: .seconds(60)))
                return nil
            } catch {
                return error
            }
        }
    }

    private func run(
        send: Duration, whole: Duration, greets: Bool = true, answers: [String: String] = [:],
        beforeAnswer: @escaping @Sendable () -> Void = {},
        _ body: (Scene, FakeMailServer) async throws -> Void
    ) async throws {
        let pool = WorkerPool(name: "outbound", workers: 2, queueMax: 16, queueMaxPerTenant: 16)
        let server = FakeMailServer(greets: greets, answers: answers, beforeAnswer: beforeAnswer)
        defer { end(pool, server) }
        var times = SMTPTimes()
        (times.send, times.whole) = (send, whole)
        let smtp = SMTPClient(pool: OutboundPool(pool), times: times)
        try await body(Scene(smtp: smtp, port: server.port), server)
    }

    /// Closing may block a test's thread for a moment.
    private func end(_ pool: WorkerPool, _ server: FakeMailServer) {
        server.close()
        pool.close()
    }

    /// A server that refuses the session may take the mail later; one that refuses the mail will not.
    @Test(
        arguments: [
            (["": "554 no service here"], .transient(code: 554, .broken)),
            (["EHLO": "502 not now", "HELO": "502 not now"], .transient(code: 502, .broken)),
            (["MAIL": "530 log in first"], .transient(code: 530, .broken)),
            (["MAIL": "451 later"], .transient(code: 451, .broken)),
            (["MAIL": "550 not from you"], .permanent(code: 550)),
            (["RCPT": "550 nobody of that name"], .permanent(code: 550)),
            (["DATA": "554 not this"], .permanent(code: 554)),
        ] as [([String: String], SMTPError)])
    func `A refused session is told from a refused mail`(_ answers: [String: String], _ expected: SMTPError)
        async throws
    {
        try await run(send: .seconds(50), whole: .seconds(50), answers: answers) { scene, server in
            #expect(await scene.mailError() as? SMTPError == expected)
            #expect(server.wholeCount == 0)
        }
    }

    @Test func `A server that does not take the mail in time is over soon`() async throws {
        try await run(send: .seconds(1), whole: .seconds(50), greets: false) { scene, server in
            #expect(await scene.mailError() as? SMTPError == .transient(code: 0, .timedOut))
            #expect(server.wholeCount == 0)
        }
    }

    @Test func `The answer to a whole mail may take longer than the sending`() async throws {
        let answering = Semaphore()
        try await run(
            send: .seconds(1), whole: .seconds(50), beforeAnswer: { _ = answering.wait(for: .seconds(3)) }
        ) { scene, server in
            let error = await scene.mailError()
            #expect(error == nil && server.wholeCount == 1)
        }
    }

    @Test func `A whole mail without an answer is told from one that was not sent`() async throws {
        let answering = Semaphore()
        try await run(send: .seconds(1), whole: .seconds(2), beforeAnswer: { answering.wait() }) { scene, server in
            defer { answering.signal() }
            #expect(await scene.mailError() as? SMTPError == .unanswered)
            #expect(server.wholeCount == 1)
        }
    }

    @Test func `A stop ends a mail that no server has whole, and refuses the next`() async throws {
        try await run(send: .seconds(50), whole: .seconds(50), greets: false) { scene, server in
            let mail = Task { await scene.mailError() }
            try await until("the mail is on its way") { server.connectionCount == 1 }
            scene.smtp.stop(awaitingAnswersUntil: .now.advanced(by: .seconds(50)))
            #expect(await mail.value as? SMTPError == .stopped)
            #expect(await scene.mailError() as? SMTPError == .stopped)
        }
    }

    @Test func `A stop awaits the answer to a whole mail`() async throws {
        let answering = Semaphore()
        try await run(send: .seconds(50), whole: .seconds(50), beforeAnswer: { answering.wait() }) { scene, server in
            defer { answering.signal() }
            let mail = Task { await scene.mailError() }
            try await until("the server has the mail") { server.wholeCount == 1 }
            scene.smtp.stop(awaitingAnswersUntil: .now.advanced(by: .seconds(50)))
            // A mail that is not whole would have ended by then.
            try await Task.sleep(for: .seconds(2))
            answering.signal()
            let error = await mail.value
            #expect(error == nil)
        }
    }

    @Test func `The answer to a whole mail is not awaited beyond the end of a stop`() async throws {
        let answering = Semaphore()
        try await run(send: .seconds(50), whole: .seconds(50), beforeAnswer: { answering.wait() }) { scene, server in
            defer { answering.signal() }
            let mail = Task { await scene.mailError() }
            try await until("the server has the mail") { server.wholeCount == 1 }
            scene.smtp.stop(awaitingAnswersUntil: .now)
            #expect(await mail.value as? SMTPError == .unanswered)
        }
    }

    /// Nothing ends a lookup, so a stop leaves it behind.
    @Test func `A stop does not wait for the name of a mail server`() async throws {
        let resolving = Semaphore()
        defer { resolving.signal() }
        let pool = WorkerPool(name: "outbound", workers: 1, queueMax: 16, queueMaxPerTenant: 16)
        let lookups = NameLookups { _ in
            resolving.wait()
            return []
        }
        let scene = Scene(smtp: SMTPClient(pool: OutboundPool(pool), lookups: lookups), host: "silent.test", port: 25)
        let mail = Task { await scene.mailError() }
        try await until("the name is looked up") { lookups.runningCount == 1 }
        scene.smtp.stop(awaitingAnswersUntil: .now)
        #expect(await mail.value as? SMTPError == .stopped)
        close(pool)
    }

    private func close(_ pool: WorkerPool) { pool.close() }
}
