import Base
import Glibc
import JSON
import TestSupport
import Testing

@testable import postern

/// The file of rejected rows, which may hold password hashes.
@Suite struct RejectsFileTests {
    private static func mode(_ path: String) -> mode_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    private static func write(_ path: String, _ lines: String, mode: mode_t) {
        writeFile(path, [UInt8](lines.utf8))
        chmod(path, mode)
    }

    @Test(arguments: [0, 5] as [Int64]) func `A file that others may read is replaced by one of the owner's alone`(
        settled: Int64
    ) throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/rejects"
            Self.write(path, #"{"row":3}"# + "\n" + #"{"row":9}"# + "\n", mode: 0o644)
            // Somebody who has the file open does not see what is written from now on.
            let former = open(path, O_RDONLY)
            defer { close(former) }
            let file = try RejectsFile(path, settledRowCount: settled)
            try file.append(["row": .integer(12)])
            #expect(Self.mode(path) == 0o600)
            #expect(
                readFile(path) == [UInt8](((settled == 0 ? "" : #"{"row":3}"# + "\n") + #"{"row":12}"# + "\n").utf8))
            var bytes = [UInt8](repeating: 0, count: 100)
            #expect(read(former, &bytes, bytes.count) == 20)
        }
    }

    @Test func `What is no file of this kind is left as it was`() throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/rejects"
            Self.write(path, "something else\n", mode: 0o640)
            #expect(throws: CommandError.self) { _ = try RejectsFile(path, settledRowCount: 5) }
            #expect(readFile(path) == [UInt8]("something else\n".utf8) && Self.mode(path) == 0o640)
        }
    }

    @Test func `A pipe or a device is written to as it is`() throws {
        let file = try RejectsFile("/dev/null", settledRowCount: 0)
        try file.append(["row": .integer(1)])
        var status = stat()
        #expect(stat("/dev/null", &status) == 0 && status.st_mode & S_IFMT == S_IFCHR)
    }
}
