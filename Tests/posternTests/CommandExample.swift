import TestSupport

@testable import postern

/// The examples of the commands, as tests run them.
enum CommandExample {
    /// Writes the files that the examples read.
    static func writeFiles(in directory: String) throws {
        _ = try TestCertificates(in: directory)
        writeFile("\(directory)/secret", [UInt8]("c2VjcmV0".utf8))
        writeFile("\(directory)/users", [UInt8](#"{"users":[{"localId":"u1","passwordHash":"AAAA"}]}"#.utf8))
    }

    /// A command's own example as words, with files that are there.
    static func words(of command: Command, in directory: String) throws -> [String] {
        var words: [String] = []
        var isQuoted = false
        for part in command.example.split(separator: " ", omittingEmptySubsequences: false) {
            let opens = part.contains { $0 == "'" || $0 == "\"" }
            let text = part.filter { $0 != "'" && !(command.name.hasPrefix("tenant") && $0 == "\"") }
            if isQuoted { words[words.count - 1] += " " + text } else { words.append(String(text)) }
            if opens, part.count(where: { $0 == "'" || $0 == "\"" }) == 1 { isQuoted.toggle() }
        }
        // Removes the shell's part, and the output format, which is for programs.
        for taken in ["<", ">", "-o"] {
            if let index = words.firstIndex(of: taken) { words.removeSubrange(index...(index + 1)) }
        }
        guard case .command(_, let arguments) = try CommandTree.match(words) else { return words }
        for flag in command.flags where flag.placeholder == "FILE" {
            guard let value = arguments.value(flag.name), let index = words.firstIndex(of: value) else { continue }
            let files = ["key-out": "\(directory)/\(command.name)", "issuer": "\(directory)/ca.pem"]
            words[index] = files[flag.name] ?? "\(directory)/secret"
        }
        let files = [
            "shop-backend.pem": "\(directory)/secret", "users.json": "\(directory)/users",
            "uids.txt": "\(directory)/users", "certs": "\(directory)/certs",
        ]
        return words.map { files[$0] ?? $0 }
    }
}
