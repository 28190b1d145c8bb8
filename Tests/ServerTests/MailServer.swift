import Glibc
import JSON
import TestSupport
import Testing

/// aiosmtpd in a process of its own (Tests/Fixtures/smtp_receiver.py).
struct MailServer {
    let process: ChildProcess
    let port: UInt16
    let file: String

    /// `options` as the script takes them.
    init(_ directory: String, port: UInt16, _ options: [String] = []) throws {
        self.port = port
        self.file = "\(directory)/mails-\(port)"
        let folder = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
        let script = "/\(folder)/Fixtures/smtp_receiver.py"
        process = try ChildProcess(
            "/usr/bin/python3", [script, "\(port)", file] + options, output: "\(directory)/smtp")
        for _ in 0..<500 {
            if let client = try? RawClient(port: port) {
                client.close()
                return
            }
            usleep(20_000)
        }
        Issue.record("the mail server did not start; python3-aiosmtpd is missing? run tools/bootstrap --tests")
    }

    func mails() throws -> [JSONValue] {
        try (readFile(file) ?? []).split(separator: 0x0A).map { try JSONValue(parsing: Array($0)) }
    }
}

/// A port that accepts connections and never says a word; `close` resets them.
struct SilentServer {
    let port: UInt16
    private let descriptor: Int32

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        port = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(descriptor, generic, length)
                getsockname(descriptor, generic, &length)
            }
            return UInt16(bigEndian: pointer.pointee.sin_port)
        }
        try #require(listen(descriptor, 64) == 0)
    }

    func close() { _ = Glibc.close(descriptor) }
}
