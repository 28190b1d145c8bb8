import Base
import Glibc
import TestSupport
import Testing

@testable import postern

/// The file of a new secret, also on file systems where each file has a name from the beginning.
@Suite struct NewFileTests {
    private static func mode(of path: String) -> mode_t {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    @Test(arguments: [true, false])
    func `The file gets its name with the secret in it, and nothing is left beside it`(canBeNameless: Bool) throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/key"
            let file = try NewFile(path, canBeNameless: canBeNameless)
            #expect(!File.exists(path))
            try file.finish(with: [1, 2], ifLost: "lost")
            let names = fileNames(in: directory)
            #expect(readFile(path) == [1, 2] && Self.mode(of: path) == 0o600 && names == ["key"], "\(names)")
        }
    }

    @Test(arguments: [true, false])
    func `A secret that is not made leaves no file`(canBeNameless: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let file = try NewFile("\(directory)/key", canBeNameless: canBeNameless)
            await #expect(throws: CommandError.self) {
                let _: Int = try await file.kept { throw CommandError("refused") }
            }
            let names = fileNames(in: directory)
            #expect(names.isEmpty, "\(names)")
        }
    }

    /// Two commands may have been given the same free name.
    @Test(arguments: [true, false])
    func `A name that was taken meanwhile stays, and the secret is beside it`(canBeNameless: Bool) throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/key"
            let file = try NewFile(path, canBeNameless: canBeNameless)
            writeFile(path, [9])
            let error = #expect(throws: CommandError.self) { try file.finish(with: [1, 2], ifLost: "lost") }
            let beside = try #require(fileNames(in: directory).first { $0 != "key" })
            #expect(readFile(path) == [9] && readFile("\(directory)/\(beside)") == [1, 2])
            #expect(error?.hint == "the new secret is in \(directory)/\(beside)")
            #expect(Self.mode(of: "\(directory)/\(beside)") == 0o600)
        }
    }

    @Test func `A file that exists is refused, and one with nothing in it may be removed`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/key"
            for (content, advice) in [([1], "is not overwritten"), ([], "remove it")] as [([UInt8], String)] {
                writeFile(path, content)
                let error = #expect(throws: CommandError.self) { try NewFile(path) }
                #expect(error?.exitCode == .usage && error?.hint?.contains(advice) == true, "\(error?.hint ?? "")")
                #expect(readFile(path) == content)
            }
            unlink(path)
            #expect(symlink("/nonexistent/key", path) == 0)
            #expect(throws: CommandError.self) { try NewFile(path) }
        }
    }
}
