import Base
import Glibc
import TestSupport
import Testing

/// Files that `postern` makes, in a folder whose disk fails.
@Suite struct OutputFolderTests {
    /// A file whose name is not on the disk is lost when the machine stops: a backup of `backup create && rm …`, for
    /// example.
    @Test(arguments: [["backup", "create"], ["user", "export"], ["audit", "export"]])
    func `A file counts as written when its name is on the disk, too`(_ command: [String]) async throws {
        try await withServer { server in
            let directory = server.directory
            let library = try FaultyServer.buildLibrary(in: directory)
            let (out, rules) = ("\(directory)/out", "\(directory)/rules")
            #expect(mkdir(out, 0o700) == 0)
            _ = try IdentityClient(server).signUp("ada@example.com")
            writeFile("\(directory)/admin-key", server.adminKey.withBytes { [UInt8]($0) })
            func run(_ name: String) throws -> (status: Int32, said: String) {
                let program = try ChildProcess(
                    "/usr/bin/env",
                    [
                        "LD_PRELOAD=\(library)", "FAULTY_DISK_FILE=/out", "FAULTY_DISK_RULES=\(rules)",
                        ChildProcess.built("postern"), "--server", "127.0.0.1:\(server.port)", "--key-file",
                        "\(directory)/admin-key",
                    ] + command + ["\(out)/\(name)"], output: "\(directory)/said")
                let status = program.wait()
                return (status, String(decoding: readFile("\(directory)/said") ?? [], as: UTF8.self))
            }
            let whole = try run("whole.ndjson")
            #expect(whole.status == 0, "\(whole.said)")
            writeFile(rules, [UInt8]("fail sync 1 0 EIO\n".utf8))
            let lost = try run("lost.ndjson")
            #expect(lost.status == 1 && lost.said.contains("may not be on the disk"), "\(lost.said)")
        }
    }
}
