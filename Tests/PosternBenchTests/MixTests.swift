import Testing

@testable import PosternBench

@Suite struct MixTests {
    @Test func `A mix is operations with weights`() throws {
        let mix = try Mix(parsing: "get=70,get-by-email=2,sign-in=1")
        #expect(
            mix.shares == [
                .init(operation: .get, weight: 70), .init(operation: .getByEmail, weight: 2),
                .init(operation: .signIn, weight: 1),
            ])
        #expect(mix.description == "get=70,get-by-email=2,sign-in=1")
    }

    @Test(arguments: Operation.inMixes)
    func `Every operation has a name that a mix takes`(operation: PosternBench.Operation) throws {
        #expect(try Mix(parsing: "\(operation.name)=1").operations == [operation])
    }

    @Test(arguments: [
        "", "get", "get=", "get=0", "get=-1", "get=1000001", "get=1,", "get=1,get=2", "fly=1", "get=1=2", "get=x",
    ])
    func `A mix that says nothing clear is refused`(text: String) {
        #expect(throws: UsageError.self) { try Mix(parsing: text) }
    }

    @Test func `Operations come as often as their weights say`() throws {
        let mix = try Mix(parsing: "get=70,verify=20,create=10")
        var random = SeededGenerator(seed: 11)
        var counts: [PosternBench.Operation: Int] = [:]
        for _ in 0..<100_000 { counts[mix.pick(&random), default: 0] += 1 }
        // Four standard deviations of a binomial distribution are below 600.
        #expect((69_400...70_600).contains(counts[.get] ?? 0))
        #expect((19_400...20_600).contains(counts[.verify] ?? 0))
        #expect((9_400...10_600).contains(counts[.create] ?? 0))
        #expect(counts.count == 3)
    }
}
