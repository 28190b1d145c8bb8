import Base
import Testing

@testable import PosternBench

@Suite struct PopulationTests {
    private static var population: Population {
        var population = Population(tenantID: "bench")
        population.tenantCount = 3
        population.zipf = 0.5
        population.userCount = 7
        population.passwordUserCount = 3
        population.seed = 42
        population.origin = Population.Origin(projectID: "here", tenantCreatedAt: 17, hashes: .synthetic)
        population.done = Population.Progress(users: 7, passwordUsers: 3, sessionsBeganAt: 99, isComplete: true)
        population.sessions = [
            Session(tenant: 2, idToken: [UInt8]("a.b.c".utf8), refreshToken: [UInt8]("r1".utf8)),
            Session(idToken: [UInt8]("d.e.f".utf8), refreshToken: [UInt8]("r2".utf8)),
        ]
        return population
    }

    @Test func `A state file gives back what was written`() throws {
        #expect(try StateFile.decode(StateFile.encode(Self.population), from: "state") == Self.population)
        #expect(try StateFile.decode(StateFile.encode(Population(tenantID: "a")), from: "state").origin == nil)
    }

    @Test func `A file that is none is refused, and so is each part of one`() throws {
        for text in ["", "{}", "postern-bench 1 bench 1 1\n", #"{"postern_bench_state":2}"#] {
            #expect(throws: BenchError.self) { try StateFile.decode([UInt8](text.utf8), from: "state") }
        }
        let whole = StateFile.encode(Self.population)
        for count in whole.indices.dropLast() where whole[count] == UInt8(ascii: "\n") || count % 7 == 0 {
            // A refresh token that lost its end looks like a whole one.
            guard count < whole.count - 3 else { continue }
            #expect(throws: BenchError.self) { try StateFile.decode(Array(whole[..<count]), from: "state") }
        }
        for (from, to) in [
            (#""tenants":3"#, #""tenants":2"#), (#""zipf":0.5"#, #""zipf":6"#), (#""users":7"#, #""users":-1"#),
        ] {
            let changed = String(decoding: whole, as: UTF8.self).replacing(from, with: to)
            #expect(throws: BenchError.self) { try StateFile.decode([UInt8](changed.utf8), from: "state") }
        }
    }

    @Test func `Tenants share users by Zipf's law, and each user is in one place`() {
        for (total, tenants, zipf) in [
            (1_000, 10, 1.0), (7, 20, 1.0), (0, 5, 0.5), (100, 1, 1), (99, 10, 0), (50, 7, 5),
        ] {
            let shares = TenantShares(of: total, among: tenants, zipf: zipf)
            let counts = (0..<tenants).map { shares.count($0) }
            #expect(counts.reduce(0, +) == total && counts.allSatisfy { $0 >= 0 })
            var found = [Int](repeating: 0, count: tenants)
            for index in 0..<total {
                let (tenant, number) = shares.place(index)
                #expect(number == found[tenant])
                found[tenant] += 1
            }
            #expect(found == counts)
        }
        // 1 + 1/2 + … + 1/10 is 2.93.
        #expect(TenantShares(of: 2_930, among: 10, zipf: 1).count(0) == 1_000)
        #expect(TenantShares(of: 2_930, among: 10, zipf: 1).count(9) == 100)
    }

    @Test func `Names of a kind have the same length, and the placeholder fits`() {
        #expect(UserName.uid(0).byteCount == 28)
        #expect(UserName.uid(FrameTemplate.placeholder).byteCount == 28)
        #expect(UserName.uid(12).string == "u" + String(repeating: "0", count: 25) + "12")
        #expect(UserName.freshEmail(3, run: 255).string == "c00000000000000ff-0000000003@bench.example")
    }
}
