import Base
import Glibc
import TestSupport
import Testing

@testable import postern

@Suite struct FileTests {
    @Test func aReplacedFileIsReplacedAsAWholeAndItsFolderIsMade() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/a/b/file"
            for text in ["first, and longer", "second"] {
                try File.replace(path, with: Array(text.utf8))
                #expect(try Self.read(path) == text)
            }
            #expect(try Self.names(in: "\(directory)/a/b") == ["file"])
        }
    }

    /// A folder cannot be replaced by a file.
    @Test func aFileThatCannotBeReplacedLeavesNothingBehind() throws {
        try withTemporaryDirectory { directory in
            #expect(mkdir("\(directory)/taken", 0o700) == 0)
            #expect(throws: CommandError.self) { try File.replace("\(directory)/taken", with: [1]) }
            let names = try Self.names(in: directory)
            #expect(names == ["taken"])
        }
    }

    /// Two backups to the same new file, for example.
    @Test(arguments: [true, false])
    func `A file that is begun stays when another command makes one of the same name`(
        canBeNameless: Bool
    ) async throws {
        try await withTemporaryDirectory { directory in
            let path = "\(directory)/file"
            try await File.create(path, canBeNameless: canBeNameless) { put in
                try put([1])
                try await File.create(path, canBeNameless: canBeNameless) { other in try other([2]) }
                #expect(readFile(path) == [2])
                unlink(path)
                try put([3])
            }
            let names = try Self.names(in: directory)
            #expect(readFile(path) == [1, 3] && names == ["file"], "\(names)")
        }
    }

    @Test(arguments: [true, false])
    func `A file that cannot be completed leaves nothing behind`(canBeNameless: Bool) async throws {
        try await withTemporaryDirectory { directory in
            await #expect(throws: CommandError.self) {
                let _: Int = try await File.create("\(directory)/file", canBeNameless: canBeNameless) { put in
                    try put([1])
                    throw CommandError("broken off")
                }
            }
            let names = try Self.names(in: directory)
            #expect(names.isEmpty, "\(names)")
        }
    }

    @Test func `A finished file gets a name that is free, also where no file has two names`() throws {
        try withTemporaryDirectory { directory in
            let (unfinished, path) = ("\(directory)/file.unfinished", "\(directory)/file")
            let refuse: (String, String) -> Int32 = { _, _ in
                errno = EPERM
                return -1
            }
            writeFile(unfinished, [1])
            try File.giveName(path, to: unfinished)
            #expect(readFile(path) == [1] && !File.exists(unfinished))
            writeFile(unfinished, [2])
            let refusals = [
                Self.refusal { () throws(CommandError) in try File.giveName(path, to: unfinished) },
                Self.refusal { () throws(CommandError) in try File.giveName(path, to: unfinished, link: refuse) },
            ]
            #expect(refusals.allSatisfy { $0.contains("exists") }, "\(refusals)")
            #expect(readFile(path) == [1] && readFile(unfinished) == [2])
            unlink(path)
            try File.giveName(path, to: unfinished, link: refuse)
            #expect(readFile(path) == [2] && !File.exists(unfinished))
        }
    }

    /// The message of the error that `body` throws; empty if it throws none.
    private static func refusal(_ body: () throws(CommandError) -> Void) -> String {
        do throws(CommandError) {
            try body()
            return ""
        } catch {
            return error.message
        }
    }

    private static func read(_ path: String) throws -> String {
        let descriptor = open(path, O_RDONLY)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes[..<max(0, count)], as: UTF8.self)
    }

    private static func names(in folder: String) throws -> [String] {
        let directory = try #require(opendir(folder))
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}
