import Base
import TLS

/// The flags every command that talks to a server has.
struct Target: Sendable {
    let address: ServerAddress
    /// What HELLO carries.
    let authorization: Text
    private let pid: Int?

    init(_ arguments: inout Arguments) throws {
        var address = try ServerAddress(parsing: arguments.text("--server", default: "127.0.0.1:7400"))
        if let path = arguments.text("--ca-file") { address.tls = try Self.context(trusting: path) }
        self.address = address
        let path = try arguments.required("--key-file")
        pid = try arguments.number("--server-pid", in: 1...Int(Int32.max))
        let key = try TextFile.read(path).filter { $0 > UInt8(ascii: " ") }
        guard let text = Text(validating: [UInt8]("Bearer ".utf8) + key), !key.isEmpty else {
            throw BenchError(.notReady, "\(path) holds no API key")
        }
        authorization = text
    }

    private static func context(trusting path: String) throws -> TLSContext {
        do throws(TLSError) {
            var configuration = ClientTLSConfiguration()
            let pem = try TLSFile.read(path, byteCountMax: 1 << 20, isSecret: false)
            configuration.trusted = try Certificate.all(pem: pem, countMax: 1_000)
            return try TLSContext(configuration)
        } catch {
            throw BenchError(.notReady, "--ca-file \(path): \(error)")
        }
    }

    /// The server's process: given, or found by its port when it runs on this machine.
    var process: ServerProcess? { pid.map { ServerProcess(pid: $0) } ?? ServerProcess(listeningOn: address.port) }
}
