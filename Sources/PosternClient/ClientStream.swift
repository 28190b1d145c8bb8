import Base
import TLS

/// The byte stream of a client's connection: plain, or through TLS. Its one owner closes it once.
struct ClientStream {
    enum Result {
        /// This many bytes; 0 from a read is the peer's end.
        case bytes(Int)
        case wouldBlock
        case failed(String)
    }

    let socket: ClientSocket
    private let session: TLSSession?
    /// A read can continue only when the socket is writable.
    private(set) var isReadBlockedByWrite = false

    /// The most KeyUpdates of the server. Each MiB that it sends allows one more.
    private static let keyUpdateCountMax = 16

    /// Closes the socket if TLS cannot be started on it.
    init(owning socket: ClientSocket, tls: ClientTLS?) throws(Failure) {
        self.socket = socket
        guard let tls else {
            session = nil
            return
        }
        do throws(TLSError) {
            let session = try TLSSession(
                tls.context, descriptor: socket.descriptor, keyUpdateCountMax: Self.keyUpdateCountMax)
            try session.verifyServer(named: tls.serverName)
            self.session = session
        } catch {
            socket.close()
            throw .connectionFailed("TLS: \(error)")
        }
    }

    /// False during the TLS handshake. Reads drive the handshake, and nothing is written before its end.
    var isEstablished: Bool { session?.isEstablished ?? true }

    /// Whether there is input for which the socket does not become readable.
    var hasPendingInput: Bool { session?.hasPendingInput ?? false }

    mutating func read(into buffer: UnsafeMutableRawPointer, byteCount: Int) -> Result {
        guard let session else { return Result(socket.read(into: buffer, byteCount: byteCount)) }
        let step = session.read(into: buffer, byteCount: byteCount)
        isReadBlockedByWrite = step == .wantsWrite
        switch step {
        case .bytes(let count): return .bytes(count)
        case .wantsRead, .wantsWrite: return .wouldBlock
        case .ended: return .bytes(0)
        case .truncated:
            return .failed(
                session.isEstablished
                    ? "The connection was cut off."
                    : "The server ended the TLS handshake; it may speak no TLS on this port.")
        case .failed(let error):
            let refused = session.isEstablished ? nil : session.refusedCertificate
            return .failed(refused.map { "The server's certificate was refused: \($0)." } ?? "TLS: \(error)")
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Result {
        guard let session else { return Result(socket.write(bytes)) }
        switch session.write(bytes) {
        case .bytes(let count): return .bytes(count)
        case .wantsRead, .wantsWrite: return .wouldBlock
        case .ended, .truncated: return .failed("The connection was cut off.")
        case .failed(let error): return .failed("TLS: \(error)")
        }
    }

    func close() {
        session?.sayEnd()
        socket.close()
    }
}

extension ClientStream.Result {
    fileprivate init(_ result: ClientSocket.Result) {
        switch result {
        case .bytes(let count): self = .bytes(count)
        case .wouldBlock: self = .wouldBlock
        case .failed(let code): self = .failed("\(SystemError(code))")
        }
    }
}

/// The TLS settings of one connection, from files that were read for it.
struct ClientTLS {
    let context: TLSContext
    let serverName: String
}
