import Base
import Testing

@testable import PosternBench

@Suite struct PopulationTests {
    @Test func `A state file gives back what was written`() throws {
        var population = Population(tenantID: "bench")
        population.userCount = 7
        population.passwordUserCount = 3
        population.sessions = [
            Session(idToken: [UInt8]("a.b.c".utf8), refreshToken: [UInt8]("r1".utf8)),
            Session(idToken: [UInt8]("d.e.f".utf8), refreshToken: [UInt8]("r2".utf8)),
        ]
        #expect(try Population(decoding: population.encoded(), from: "state") == population)
    }

    @Test(arguments: [
        "", "postern-bench 2 bench 1 1\n", "postern-bench 1 bench x 1\n", "postern-bench 1 bench 1 1\none\n",
    ])
    func `A file that is none is refused`(text: String) {
        #expect(throws: BenchError.self) { try Population(decoding: [UInt8](text.utf8), from: "state") }
    }

    @Test func `Names of a kind have the same length, and the placeholder fits`() {
        #expect(UserName.uid(0).byteCount == 28)
        #expect(UserName.uid(FrameTemplate.placeholder).byteCount == 28)
        #expect(UserName.uid(12).string == "u" + String(repeating: "0", count: 25) + "12")
        #expect(UserName.freshEmail(3, run: 255).string == "c00000000000000ff-0000000003@bench.example")
    }
}
