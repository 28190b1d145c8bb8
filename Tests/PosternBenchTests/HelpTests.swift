import Glibc
import Testing

@testable import PosternBench

/// The help, compared with the arguments that the commands really ask for.
@Suite struct HelpTests {
    private typealias Made = @Sendable (inout Arguments) throws -> Void

    /// Each command, with the flags that it requires.
    private static let commands: [(name: String, words: [String], make: Made)] = [
        ("seed", ["--state", "s"], { _ = try SeedCommand(&$0) }),
        ("run", ["--mix", "get=1"], { _ = try RunCommand(&$0) }),
        ("saturate", ["--mix", "get=1", "--slo", "p99<1s"], { _ = try SaturateCommand(&$0) }),
        ("replay", [], { _ = try ReplayCommand(&$0) }),
        ("cost", ["--mix", "get=1", "--server-pid", "1"], { _ = try CostCommand(&$0) }),
        ("compare", ["a", "b"], { _ = try CompareCommand(&$0) }),
        ("report", ["a", "--html", "h"], { _ = try ReportCommand(&$0) }),
        ("conns", [], { _ = try ConnsCommand(&$0) }),
        ("revocation", ["--state", "s"], { _ = try RevocationCommand(&$0) }),
        ("providers", [], { _ = try ProvidersCommand(&$0) }),
        ("users", [], { _ = try UsersCommand(&$0) }),
        ("tenants", [], { _ = try TenantsCommand(&$0) }),
        ("start", ["--data-directory", "d"], { _ = try StartCommand(&$0) }),
        ("hostile", [], { _ = try HostileCommand(&$0) }),
        ("allocations", [], { _ = try AllocationsCommand(&$0) }),
    ]

    private static let commonFlags: Set<String> = [
        "--key-file", "--server", "--ca-file", "--certificate-file", "--certificate-key-file", "--server-pid",
        "--silence-max",
    ]

    @Test func `Every flag of every command is in its help, with its default`() throws {
        let traceFile = "/tmp/postern-bench-trace-\(getpid())"
        try TextFile.write([UInt8](#"{"at_ms":0,"do":"get"}"#.utf8), to: traceFile)
        defer { unlink(traceFile) }
        let keyFile = "/tmp/postern-bench-help-\(getpid())"
        try TextFile.write([UInt8]("pk_a_b\n".utf8), to: keyFile)
        defer { unlink(keyFile) }
        let common = try #require(Help.sections.first { $0.name == "common" }?.text)
        #expect(Set(Self.commands.map(\.name)) == Set(Help.sections.map(\.name)).subtracting(["common", "load"]))
        var checked = 0
        for command in Self.commands {
            let key = ["allocations", "compare", "report"].contains(command.name) ? [] : ["--key-file", keyFile]
            let words = command.words + (command.name == "replay" ? [traceFile] : [])
            var arguments = try Arguments(key + words, takingOperands: true)
            try command.make(&arguments)
            let hasLoad = ["run", "saturate", "replay", "cost"].contains(command.name)
            let own = Help.sections.filter { $0.name == command.name || $0.name == "load" && hasLoad }.map(\.text)
                .joined(separator: "\n")
            for (name, standard) in arguments.asked {
                let isCommon = Self.commonFlags.contains(name)
                let lines = (isCommon ? common : own).split(separator: "\n").map { $0.drop { $0 == " " } }
                let line = lines.first { $0.hasPrefix("\(name) ") }
                let isInUsage = lines.contains { $0.hasPrefix("postern-bench") && $0.contains(" \(name) ") }
                #expect(line != nil || isInUsage, "\(command.name) \(name)")
                if let standard { #expect(line?.hasSuffix("(\(standard))") == true, "\(command.name) \(name)") }
                checked += 1
            }
            // The help names no flag that does not exist.
            for line in own.split(separator: "\n").map({ $0.drop { $0 == " " } }) where line.hasPrefix("-") {
                let name = line.prefix { $0 != " " }
                if command.name == "replay", ["--mix", "--scenario"].contains(name) { continue }
                if command.name == "cost", ["--json", "--hdr", "--csv"].contains(name) { continue }
                #expect(arguments.asked.contains { $0.name == name }, "\(command.name) \(name)")
            }
        }
        #expect(checked == 215)
    }
}
