import Base
import Messages
import TestSupport
import Testing

@testable import PosternBench

/// What is refused before anything is sent, against a real server.
@Suite struct LoadSessionTests {
    @Test func `Each thread has a session for each of its refreshes, also with uneven connections`() async throws {
        try await BenchServer.with { bench in
            let words = ["--mix", "refresh=1", "--connections", "3", "--threads", "2", "--in-flight", "8"]
            // One thread has two connections, and half of the sessions.
            try bench.seed(["--sessions", "26"])
            #expect {
                _ = try bench.load("run", words)
            } throws: { error in
                (error as? BenchError)?.kind == .notReady && "\(error)".contains("--sessions 32 or more")
            }
            try bench.seed(["--sessions", "32"])
            #expect(try bench.load("run", words).errorCount == 0)
        }
    }

    @Test func `A tenant with users of others gets no more users, unless the caller owns it`() async throws {
        try await BenchServer.with { bench in
            let client = try bench.server.connect()
            let _: TenantsCreateResponse = try client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let _: UsersCreateResponse = try client.call(
                "postern.v1.Users/Create", UsersCreateRequest(tenantID: "acme", email: "a@acme.example"))
            let seed = [
                "--state", bench.path("acme"), "--tenant", "acme", "--users", "1", "--password-users", "0",
                "--sessions", "0",
            ]
            let users = ["--tenant", "acme", "--users", "1", "--lookups", "1"]
            #expect(throws: UsageError.self) { try bench.run("seed", seed) }
            #expect(throws: UsageError.self) { try bench.run("users", users) }
            let count: UsersCountResponse = try client.call(
                "postern.v1.Users/Count", UsersCountRequest(tenantID: "acme"))
            #expect(count.count == 1)
            try bench.run("seed", seed + ["--i-own-this"])
            // It has a user of this tool now.
            try bench.run("seed", seed)
        }
    }

    @Test(arguments: [
        ["--arrivals", "uniform"], ["--when-full", "skip"], ["--max-outstanding", "9"],
        ["--threads", "2", "--repeat-tokens", "1"],
    ])
    func `Flags that would have no effect, or another one, are refused`(words: [String]) async throws {
        try await BenchServer.with { bench in
            #expect(throws: UsageError.self) { try bench.run("run", ["--mix", "health=1", "--seconds", "1"] + words) }
        }
    }
}
