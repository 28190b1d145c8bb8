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
            let file = try RejectsFile(path, settledRowCount: settled, users: STDIN_FILENO)
            try file.append(["row": .integer(12)])
            #expect(Self.mode(path) == 0o600)
            #expect(
                readFile(path) == [UInt8](((settled == 0 ? "" : #"{"row":3}"# + "\n") + #"{"row":12}"# + "\n").utf8))
            var bytes = [UInt8](repeating: 0, count: 100)
            #expect(read(former, &bytes, bytes.count) == 20)
        }
    }

    @Test(
        arguments: [0, 5] as [Int64],
        [
            "something else\n", "something else", #"{"users":[]}"#, #"{"uid":"ann"}"# + "\n",
            #"{"row":1}"# + "\n" + #"{"uid":"ann"}"# + "\n",
        ])
    func `What is no file of this kind is left as it was`(settled: Int64, contents: String) throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/rejects"
            Self.write(path, contents, mode: 0o640)
            #expect(throws: CommandError.self) {
                _ = try RejectsFile(path, settledRowCount: settled, users: STDIN_FILENO)
            }
            #expect(readFile(path) == [UInt8](contents.utf8) && Self.mode(path) == 0o640)
        }
    }

    @Test(arguments: ["", #"{"row":1}"# + "\n" + #"{"row":2,"ui"#, #"{"row":1}"# + "\n" + #"{"r"#])
    func `An empty file is replaced, and so is one whose last line was not written to its end`(
        contents: String
    ) throws {
        try withTemporaryDirectory { directory in
            let path = "\(directory)/rejects"
            Self.write(path, contents, mode: 0o600)
            _ = try RejectsFile(path, settledRowCount: 0, users: STDIN_FILENO)
            #expect(readFile(path)?.isEmpty == true)
        }
    }

    @Test func `The users' file is never replaced, by whatever name it is called`() throws {
        try withTemporaryDirectory { directory in
            let (users, link) = ("\(directory)/users", "\(directory)/link")
            // The contents alone would pass.
            Self.write(users, #"{"row":1}"# + "\n", mode: 0o600)
            #expect(symlink(users, link) == 0)
            let source = try File.open(users)
            defer { close(source) }
            for path in [users, link] {
                let error = #expect(throws: CommandError.self) {
                    _ = try RejectsFile(path, settledRowCount: 0, users: source)
                }
                #expect(error?.message == "\(path): is the users' file" && error?.exitCode == .usage)
            }
            #expect(readFile(users) == [UInt8]((#"{"row":1}"# + "\n").utf8))
        }
    }

    @Test func `A pipe or a device is written to as it is`() throws {
        let file = try RejectsFile("/dev/null", settledRowCount: 0, users: STDIN_FILENO)
        try file.append(["row": .integer(1)])
        var status = stat()
        #expect(stat("/dev/null", &status) == 0 && status.st_mode & S_IFMT == S_IFCHR)
    }
}
