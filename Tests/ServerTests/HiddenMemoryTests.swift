import Base
import Glibc
import TestSupport
import Testing

/// What other programs on the machine can see of posternd, as proc(5) tells.
@Suite struct HiddenMemoryTests {
    /// Runs a program as a user who is not root, because a process of root looks the same whether it is hidden or not.
    private static let asNobody =
        geteuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : ["env"]

    /// False in a checkout that only root may enter.
    private static func canRunPosternd() throws -> Bool {
        try ChildProcess("env", asNobody + ["test", "-x", ChildProcess.built("posternd")]).wait() == 0
    }

    @Test(.enabled(if: try HiddenMemoryTests.canRunPosternd()))
    func `Only root can read the memory of posternd, and no core file shows it`() throws {
        try withTemporaryDirectory { directory in
            let program = ChildProcess.built("posternd")
            if geteuid() == 0 { #expect(chown(directory, 65_534, 65_534) == 0) }
            let process = try ChildProcess(
                "env",
                Self.asNobody + [
                    program, "--data-directory", "\(directory)/data", "--listen-address", "127.0.0.1:0",
                    "--http-address", "off", "--signing-algorithm", "ES256",
                ], output: "\(directory)/log")
            defer { process.kill() }
            _ = try CrashTests.adminKey("\(directory)/data")
            for name in ["mem", "environ", "fd"] {
                var status = stat()
                let code = stat("\(process.processDirectory)/\(name)", &status)
                #expect(code == 0 && status.st_uid == 0, "\(name)")
            }
            #expect(Self.words("limits", of: process, after: "Max core file size").prefix(2) == ["0", "0"])
            #expect(Self.words("status", of: process, after: "Umask:") == ["0077"])
        }
    }

    /// The words behind `name` in a file of proc(5).
    private static func words(_ file: String, of process: ChildProcess, after name: String) -> [String] {
        let text = String(decoding: readFile("\(process.processDirectory)/\(file)") ?? [], as: UTF8.self)
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
        return line.dropFirst(name.count).split { $0 == " " || $0 == "\t" }.map { String($0) }
    }
}
