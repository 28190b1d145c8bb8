import Base
import Glibc
import TestSupport
import Testing

@testable import PosternBench

/// The verifications beside `postern-bench revocation`, against a real server.
@Suite struct VerificationsTests {
    /// Verifies tokens of the population until some answers came. Returns the reason of an answer that was no
    /// verification.
    private func failure(_ bench: BenchServer, _ population: Population) throws -> String? {
        var arguments = try Arguments([
            "--server", "127.0.0.1:\(bench.server.port)", "--key-file", bench.path("key"),
        ])
        let verifications = try Verifications(try Target(&arguments), population, perSecond: 1_000)
        let thread = OSThread(name: "verifications") { verifications.run() }
        let answers = Result { try blockUntil("ten answers came") { verifications.answeredCount >= 10 } }
        verifications.stop()
        thread.join()
        try answers.get()
        return verifications.failure
    }

    @Test func `Only answers that verify a token, or refuse a revoked one, are verifications`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            var population = try StateFile.read(bench.path("state"))
            #expect(try failure(bench, population) == nil)
            population.sessions = population.sessions.map { session in
                var session = session
                session.idToken = [UInt8]("none".utf8)
                return session
            }
            #expect(try failure(bench, population) == "INVALID_ID_TOKEN")
        }
    }
}
