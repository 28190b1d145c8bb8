import Glibc
import TestSupport
import Testing

/// Holds docs/client.md to the pieces of code in the two files of snippets, which the compiler has checked.
@Suite struct FirebaseSnippetsTests {
    @Test func `There are forty-eight, and the documentation names all that is written another way here`() throws {
        let tests = #filePath.split(separator: "/").dropLast().joined(separator: "/")
        let source = try ["FirebaseSnippets", "FirebaseSecondFactorSnippets"].map { name in
            try text(ofFile: "/\(tests)/\(name).swift")
        }
        let lines = source.joined(separator: "\n").split(separator: "\n").map(String.init)
        #expect(lines.count { $0.contains("func snippet") } == 48)
        let page = try text(ofFile: "/\(tests)/../../docs/client.md")
        let marker = "// FirebaseAuth: "
        let others = lines.compactMap { line in line.firstRange(of: marker).map { String(line[$0.upperBound...]) } }
            .filter { !$0.hasSuffix(":") }
        #expect(others.count >= 9)
        for other in others { #expect(page.contains("`\(other)`"), "docs/client.md does not list \(other)") }
    }

    private func text(ofFile path: String) throws -> String {
        let descriptor = open(path, O_RDONLY)
        try #require(descriptor >= 0, "\(path)")
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 1 << 18)
        let count = read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes[..<max(count, 0)], as: UTF8.self)
    }
}
