import Base
import Glibc
import TestSupport
import Testing

/// Files that are renamed, and replace no other file.
@Suite struct FreeNameTests {
    @Test func `A file is kept under a name of its own, however often another one replaces it`() throws {
        try withTemporaryDirectory { directory in
            let (path, name) = ("\(directory)/data", "\(directory)/data.before-1800000000")
            for number in UInt8(1)...3 {
                writeFile(path, [number])
                let kept = try FreeName.keep(path, as: name)
                #expect(kept == (number == 1 ? name : "\(name)-\(number)"))
            }
            let contents = [name, "\(name)-2", "\(name)-3"].map { readFile($0) }
            #expect(contents == [[1], [2], [3]])
            #expect(access(path, F_OK) != 0)
        }
    }

    @Test func `A name that is taken is told, and both files stay`() throws {
        try withTemporaryDirectory { directory in
            let (path, name) = ("\(directory)/new", "\(directory)/old")
            writeFile(path, [1])
            writeFile(name, [2])
            let taken = try FreeName.move(path, to: name)
            #expect(!taken && readFile(path) == [1] && readFile(name) == [2])
            unlink(name)
            let free = try FreeName.move(path, to: name)
            #expect(free && readFile(name) == [1] && access(path, F_OK) != 0)
        }
    }

    @Test func `A link that leads nowhere takes a name, and a missing file is an error`() throws {
        try withTemporaryDirectory { directory in
            let (path, name) = ("\(directory)/data", "\(directory)/kept")
            #expect(symlink("\(directory)/nowhere", name) == 0)
            writeFile(path, [1])
            let kept = try FreeName.keep(path, as: name)
            #expect(kept == "\(name)-2")
            #expect(throws: FileError.self) { _ = try FreeName.keep(path, as: name) }
        }
    }
}
