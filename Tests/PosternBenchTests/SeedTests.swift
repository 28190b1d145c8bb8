import Base
import Glibc
import JSON
import Messages
import TestSupport
import Testing

@testable import PosternBench

/// Seeding, against a real server.
@Suite struct SeedTests {
    @Test func `Tenants by Zipf's law are seeded, and a load goes to all of them`() async throws {
        try await BenchServer.with { bench in
            try bench.seed([
                "--tenants", "3", "--users", "30", "--password-users", "6", "--sessions", "60", "--seed", "9",
            ])
            let population = try StateFile.read(bench.path("state"))
            #expect(population.done.isComplete && population.origin?.hashes == .synthetic && population.seed == 9)
            #expect(Set(population.sessions.map(\.tenant)) == [0, 1, 2])
            #expect(population.sessions.count { $0.tenant == 0 } == 33)
            let mix = "get=1,get-by-email=1,verify=1,lookup=1,refresh=1,sign-in=1,create=1,sign-up=1"
            let result = try bench.load("run", ["--mix", mix, "--connections", "2", "--in-flight", "4"])
            #expect(result.errorCount == 0 && result.operations.allSatisfy { $0.record.okCount > 0 })
            #expect(result.configuration.first { $0.name == "seed" }?.value == 9)
            let scenario = ["--scenario", "mixed-day", "--rate", "100", "--max-outstanding", "16"]
            #expect(try bench.load("run", scenario).errorCount == 0)
            let streams = ["--connections", "4", "--stream", "auth-state", "--quiet-seconds", "0"]
            try bench.run("conns", ["--state", bench.path("state")] + streams)
        }
    }

    @Test func `What was seeded stays when it is seeded again, with more`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            let first = try StateFile.read(bench.path("state"))
            try bench.seed(["--users", "30"])
            let second = try StateFile.read(bench.path("state"))
            #expect(second.userCount == 30 && second.done.users == 30 && second.origin == first.origin)
            // The sessions are new, of the same users.
            #expect(second.sessions.count == 40 && second.sessions[0].refreshToken != first.sessions[0].refreshToken)
            let count: UsersCountResponse = try bench.server.connect().call(
                "postern.v1.Users/Count", UsersCountRequest(tenantID: "bench"))
            #expect(count.count == 30 + 2 + 40)
        }
    }

    @Test func `Seeding that was cut short goes on where it stopped`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            var cut = try StateFile.read(bench.path("state"))
            #expect(cut.done.isComplete)
            cut.done.isComplete = false
            cut.sessions.removeLast(15)
            try StateFile.write(cut, to: bench.path("state"))
            #expect { try bench.run("run", ["--mix", "get=1", "--state", bench.path("state")]) } throws: { error in
                (error as? BenchError)?.kind == .notReady && "\(error)".contains("cut short")
            }
            try bench.seed()
            let whole = try StateFile.read(bench.path("state"))
            #expect(whole.sessions.count == 40 && Array(whole.sessions.prefix(25)) == cut.sessions)
            // Sessions that began long ago, or by a clock that was ahead, are begun anew.
            for shift in [-3_600_000_000, 3_600_000_000] as [Int64] {
                var old = whole
                old.done.isComplete = false
                old.done.sessionsBeganAt = Clock.system.now().microseconds + shift
                old.sessions.removeLast()
                try StateFile.write(old, to: bench.path("state"))
                try bench.seed()
                #expect(try StateFile.read(bench.path("state")).sessions[0] != old.sessions[0])
            }
        }
    }

    @Test func `The state of another server is refused by each command, and seeding leaves it as it is`() async throws {
        try await BenchServer.with { bench in
            try bench.seed()
            let path = bench.path("state")
            let seeded = try StateFile.read(path)
            var others = [seeded, seeded]
            others[0].origin?.projectID = "elsewhere"
            others[1].origin?.tenantCreatedAt += 1
            for other in others {
                try StateFile.write(other, to: path)
                let commands: [(String, [String])] = [
                    ("run", ["--mix", "get=1"]), ("saturate", ["--mix", "get=1", "--slo", "p99<1s"]),
                    ("cost", ["--mix", "get=1"]), ("revocation", []), ("conns", ["--stream", "revocations"]),
                    ("seed", ["--hashes", "synthetic"]),
                ]
                for (command, words) in commands {
                    #expect(throws: BenchError.self, "\(command)") {
                        try bench.run(command, words + ["--state", path])
                    }
                }
                #expect(try StateFile.read(path) == other)
            }
            // A file that is not a state file is not overwritten.
            try TextFile.write([UInt8]("my notes\n".utf8), to: path)
            #expect(throws: BenchError.self) { try bench.seed() }
            #expect(try TextFile.read(path) == [UInt8]("my notes\n".utf8))
        }
    }
}
