import Base
import TLS

/// A channel's TLS: how it verifies its server, and its own certificate. The server's certificate is always verified.
///
/// The files are read each time the channel connects, so that they may be renewed while it is in use.
///
/// ```swift
/// var options = ChannelOptions()
/// options.tls = TLSOptions(caFile: "ca.pem")
/// let channel = try Channel(address: "auth.internal:7400", credentials: .apiKey(apiKey), options: options)
/// print(channel.options.tls?.caFile ?? "plain text")
/// ```
public struct TLSOptions: Sendable, Equatable {
    /// A PEM file of the certificates to trust. Empty: the system's.
    public var caFile: String
    /// The name or numeric address that the server's certificate must be for. Empty: the host of the channel's address.
    public var serverName: String
    /// PEM files of the certificate that the channel shows a server that asks for one, and of its key. Empty: none.
    public var certificateFile: String
    /// See `certificateFile`.
    public var keyFile: String

    /// Creates the options: by default the system's certificates are trusted, and no certificate is shown.
    public init(caFile: String = "", serverName: String = "", certificateFile: String = "", keyFile: String = "") {
        self.caFile = caFile
        self.serverName = serverName
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }

    private static let fileByteCountMax = 1024 * 1024
    private static let trustedCountMax = 1_000

    /// Reads the files.
    func makeContext() throws(Failure) -> TLSContext {
        do throws(TLSError) {
            var configuration = ClientTLSConfiguration()
            if !caFile.isEmpty {
                let pem = try TLSFile.read(caFile, byteCountMax: Self.fileByteCountMax, isSecret: false)
                configuration.trusted = try Self.naming(caFile) { () throws(TLSError) in
                    try Certificate.all(pem: pem, countMax: Self.trustedCountMax)
                }
            }
            if !certificateFile.isEmpty || !keyFile.isEmpty {
                let certificate = try TLSFile.read(
                    certificateFile, byteCountMax: Self.fileByteCountMax, isSecret: false)
                let key = try TLSFile.read(keyFile, byteCountMax: Self.fileByteCountMax, isSecret: true)
                configuration.credential = try Self.naming("\(certificateFile), \(keyFile)") { () throws(TLSError) in
                    try TLSCredential(certificatePEM: certificate, keyPEM: key)
                }
            }
            return try TLSContext(configuration)
        } catch {
            throw .connectionFailed("TLS: \(error)")
        }
    }

    private static func naming<Result>(
        _ files: String, _ body: () throws(TLSError) -> Result
    ) throws(TLSError) -> Result {
        do throws(TLSError) { return try body() } catch { throw TLSError("\(files): \(error)") }
    }
}
