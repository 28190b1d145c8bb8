import Base
import TLS

/// The bytes of a client's connection: those of its socket, or what TLS makes of them. Its one owner closes it once.
struct ClientStream {
    enum Result {
        /// This many bytes; 0 from a read is the peer's end.
        case bytes(Int)
        case wouldBlock
        case failed(String)
    }

    let socket: ClientSocket
    private let session: TLSSession?
    /// A read goes on when the socket takes bytes.
    private(set) var isReadBlockedByWrite = false

    /// The server's KeyUpdates: so many, and one more for each MiB that it sends.
    private static let keyUpdateCountMax = 16

    /// Closes the socket where TLS cannot be begun on it.
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

    /// False during the handshake: reading goes on with it, and nothing is written before.
    var isEstablished: Bool { session?.isEstablished ?? true }

    /// Whether there is something to read that the socket does not announce.
    var hasPendingInput: Bool { session?.hasPendingInput ?? false }

    mutating func read(into buffer: UnsafeMutableRawPointer, byteCount: Int) -> Result {
        guard let session else {
            switch socket.read(into: buffer, byteCount: byteCount) {
            case .bytes(let count): return .bytes(count)
            case .wouldBlock: return .wouldBlock
            case .failed(let code): return .failed("\(SystemError(code))")
            }
        }
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
        guard let session else {
            switch socket.write(bytes) {
            case .bytes(let count): return .bytes(count)
            case .wouldBlock: return .wouldBlock
            case .failed(let code): return .failed("\(SystemError(code))")
            }
        }
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

/// What a channel connects with: its files, read for this time.
struct ClientTLS {
    let context: TLSContext
    let serverName: String
}
