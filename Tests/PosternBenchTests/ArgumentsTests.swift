import Testing

@testable import PosternBench

@Suite struct ArgumentsTests {
    @Test func `A value follows its flag, or an equals sign`() throws {
        var arguments = try Arguments(["--mix", "get=1", "--seconds=7", "-o", "json"])
        #expect(arguments.text("--mix") == "get=1")
        #expect(try arguments.number("--seconds", default: 1, in: 1...10) == 7)
        #expect(try arguments.choice("-o", default: OutputFormat.table) == .json)
        #expect(try arguments.number("--warmup", default: 3, in: 1...10) == 3)
        try arguments.finish()
    }

    @Test(arguments: [["--seconds"], ["seconds", "1"], ["--seconds", "1", "--seconds", "2"], ["-"]])
    func `A command line that is no list of flags is refused`(words: [String]) {
        #expect(throws: UsageError.self) { _ = try Arguments(words) }
    }

    @Test(arguments: ["0", "11", "x", ""])
    func `A number outside of its range is refused`(text: String) throws {
        var arguments = try Arguments(["--seconds", text])
        #expect(throws: UsageError.self) { _ = try arguments.number("--seconds", default: 1, in: 1...10) }
    }

    @Test(arguments: ["--json", "--hdr", "--csv"])
    func `A result does not go to a file with the name of standard output`(flag: String) throws {
        var arguments = try Arguments([flag, "-"])
        #expect(throws: UsageError.self) { _ = try ResultFiles(&arguments) }
        var file = try Arguments([flag, "result"])
        _ = try ResultFiles(&file)
        try file.finish()
    }

    @Test func `A flag that no command has is refused`() throws {
        let arguments = try Arguments(["--secods", "1"])
        #expect(throws: UsageError("--secods: no such flag here; see postern-bench --help")) { try arguments.finish() }
    }

    @Test func `A server is a host and a port`() throws {
        #expect(try ServerAddress(parsing: "[::1]:7400").description == "[::1]:7400")
        #expect(try ServerAddress(parsing: "localhost:1").port == 1)
        for text in ["", "localhost", "localhost:", "localhost:0", "localhost:65536"] {
            #expect(throws: UsageError.self) { try ServerAddress(parsing: text) }
        }
    }
}
