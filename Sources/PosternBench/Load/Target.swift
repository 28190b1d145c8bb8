import Base
import PosternClient
import TLS

/// The flags of every command that talks to a server.
struct Target: Sendable {
    /// The address for native frames.
    let address: ServerAddress
    /// The address for gRPC, which has its own protocol name inside of TLS.
    let grpcAddress: ServerAddress
    /// The same settings for a channel of the client library. Nil: plain text.
    let channelTLS: TLSOptions?
    /// The credential as HELLO carries it.
    let authorization: Text
    private let pid: Int?

    init(_ arguments: inout Arguments) throws {
        var address = try ServerAddress(parsing: arguments.text("--server", default: "127.0.0.1:7400"))
        address.silenceSecondsMax = try arguments.number("--silence-max", default: 30, in: 1...3_600)
        var grpcAddress = address
        let caFile = arguments.text("--ca-file")
        let certificate = arguments.text("--certificate-file")
        let certificateKey = arguments.text("--certificate-key-file")
        guard (certificate == nil) == (certificateKey == nil), certificate == nil || caFile != nil else {
            throw UsageError("--certificate-file and --certificate-key-file go together, and with --ca-file")
        }
        if let caFile {
            let credential = try certificate.map { try Self.credential($0, certificateKey ?? $0) }
            address.tls = try Self.context(.native, trusting: caFile, credential)
            grpcAddress.tls = try Self.context(.http2, trusting: caFile, credential)
        }
        channelTLS = caFile.map {
            TLSOptions(caFile: $0, certificateFile: certificate ?? "", keyFile: certificateKey ?? "")
        }
        self.address = address
        self.grpcAddress = grpcAddress
        let path = try arguments.required("--key-file")
        pid = try arguments.number("--server-pid", in: 1...Int(Int32.max))
        let key = try TextFile.read(path).filter { $0 > UInt8(ascii: " ") }
        guard let text = Text(validating: [UInt8]("Bearer ".utf8) + key), !key.isEmpty else {
            throw BenchError(.notReady, "\(path) holds no API key")
        }
        authorization = text
    }

    private static func context(
        _ applicationProtocol: ApplicationProtocol, trusting path: String, _ credential: TLSCredential?
    ) throws -> TLSContext {
        do throws(TLSError) {
            var configuration = ClientTLSConfiguration()
            let pem = try TLSFile.read(path, byteCountMax: 1 << 20, isSecret: false)
            configuration.trusted = try Certificate.all(pem: pem, countMax: 1_000)
            configuration.credential = credential
            configuration.applicationProtocol = applicationProtocol
            return try TLSContext(configuration)
        } catch {
            throw BenchError(.notReady, "--ca-file \(path): \(error)")
        }
    }

    /// The certificate for a server that asks for one.
    private static func credential(_ path: String, _ keyPath: String) throws -> TLSCredential {
        do throws(TLSError) {
            return try TLSCredential(
                certificatePEM: try TLSFile.read(path, byteCountMax: 1 << 20, isSecret: false),
                keyPEM: try TLSFile.read(keyPath, byteCountMax: 1 << 20, isSecret: true))
        } catch {
            throw BenchError(.notReady, "--certificate-file \(path): \(error)")
        }
    }

    /// The server's process: given, or found by its port when it runs on this machine. If the server is on another one,
    /// a process here that listens on the same port is not the server.
    var process: ServerProcess? {
        if let pid { return ServerProcess(pid: pid) }
        return address.isOfThisMachine ? ServerProcess(listeningOn: address.port) : nil
    }
}
