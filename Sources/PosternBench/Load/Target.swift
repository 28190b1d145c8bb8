import Base

/// The flags every command that talks to a server has.
struct Target: Sendable {
    let address: ServerAddress
    /// What HELLO carries.
    let authorization: Text
    private let pid: Int?

    init(_ arguments: inout Arguments) throws {
        address = try ServerAddress(parsing: arguments.text("--server", default: "127.0.0.1:7400"))
        let path = try arguments.required("--key-file")
        pid = try arguments.number("--server-pid", in: 1...Int(Int32.max))
        let key = try TextFile.read(path).filter { $0 > UInt8(ascii: " ") }
        guard let text = Text(validating: [UInt8]("Bearer ".utf8) + key), !key.isEmpty else {
            throw BenchError(.notReady, "\(path) holds no API key")
        }
        authorization = text
    }

    /// The server's process: given, or found by its port when it runs on this machine.
    var process: ServerProcess? { pid.map { ServerProcess(pid: $0) } ?? ServerProcess(listeningOn: address.port) }
}
