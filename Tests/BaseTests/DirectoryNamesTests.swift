import Base
import Glibc
import TestSupport
import Testing

/// The names in a directory. What an error in the middle does is tested with posternd, over a directory that fails.
@Suite struct DirectoryNamesTests {
    @Test func `All names are listed, without the directory's own`() throws {
        try withTemporaryDirectory { directory in
            let before = try DirectoryNames.list(directory)
            #expect(before.isEmpty)
            for name in ["a", ".b", "c d"] { writeFile("\(directory)/\(name)", [0]) }
            #expect(mkdir("\(directory)/e", 0o700) == 0)
            let after = try DirectoryNames.list(directory)
            #expect(after.sorted() == [".b", "a", "c d", "e"])
        }
    }

    @Test func `A directory that is not there is an error`() throws {
        try withTemporaryDirectory { directory in
            let error = #expect(throws: FileError.self) { try DirectoryNames.list("\(directory)/none") }
            #expect(error?.code == ENOENT && error?.call == "opendir")
        }
    }
}
