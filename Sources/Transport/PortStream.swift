import Base
import Glibc
import TLS

/// The stream of a port with TLS. The peer's first byte tells what it speaks: a TLS record of a handshake begins with
/// 0x16, and no protocol that is spoken in clear does.
struct PortStream: ByteStream {
    private enum State {
        /// Next: all others.
        case undecided
        case plain
        case tls(TLSSession)
        /// A TLS peer was told why. Further input is thrown away.
        case refused
    }

    private static let handshakeRecord: UInt8 = 0x16

    private let socket: Socket
    private let tls: ServerTLS
    private let port: ServerTLS.Port
    private let mayBePlain: Bool
    private var state = State.undecided
    /// The first byte that the client must send inside TLS, because it named that protocol (ALPN).
    private var firstByte: UInt8?

    init(_ socket: Socket, from peer: Peer, tls: ServerTLS, on port: ServerTLS.Port = .rpc) {
        self.socket = socket
        self.tls = tls
        self.port = port
        self.mayBePlain = tls.allowsPlaintext(from: peer, on: port)
    }

    var descriptor: Int32 { socket.descriptor }

    var stage: ByteStreamStage {
        switch state {
        case .undecided: .undecided
        case .tls(let session): session.isEstablished ? .open : .handshake
        case .plain, .refused: .open
        }
    }

    var hasPendingInput: Bool {
        if case .tls(let session) = state { session.hasPendingInput } else { false }
    }

    var heldByteCount: Int {
        if case .tls(let session) = state { session.heldByteCount } else { 0 }
    }

    var isEncrypted: Bool {
        if case .tls = state { true } else { false }
    }

    var peerCertificate: PeerCertificate? {
        if case .tls(let session) = state { session.peerCertificate } else { nil }
    }

    mutating func read(into buffer: UnsafeMutableRawPointer, byteCount: Int) -> ByteStreamResult {
        switch state {
        case .plain, .refused: return socket.read(into: buffer, byteCount: byteCount)
        case .tls(let session): return read(session, into: buffer, byteCount: byteCount)
        case .undecided: break
        }
        let peeked = socket.peek(into: buffer)
        guard case .bytes(let count) = peeked, count > 0 else { return peeked }
        let first = buffer.load(as: UInt8.self)
        guard first == Self.handshakeRecord else {
            guard mayBePlain else {
                tls.refusedPlaintext(firstByte: first)
                state = .refused
                return .refused
            }
            state = .plain
            return socket.read(into: buffer, byteCount: byteCount)
        }
        do {
            let session = try tls.makeSession(descriptor: socket.descriptor, on: port)
            state = .tls(session)
            return read(session, into: buffer, byteCount: byteCount)
        } catch {
            return .failed(errno: ENOMEM)
        }
    }

    private mutating func read(
        _ session: TLSSession, into buffer: UnsafeMutableRawPointer, byteCount: Int
    ) -> ByteStreamResult {
        let wasEstablished = session.isEstablished
        let step = session.read(into: buffer, byteCount: byteCount)
        if !wasEstablished, session.isEstablished {
            tls.metrics.handshakes.add()
            firstByte = session.applicationProtocol?.firstByte
        }
        switch step {
        case .bytes(let count):
            // If a client names one protocol and speaks another, somebody else may have made it send these bytes.
            if let expected = firstByte.take(), buffer.load(as: UInt8.self) != expected { return refuse(session) }
            return .bytes(count)
        case .wantsRead: return .wouldBlock
        case .wantsWrite: return .wouldBlockWriting
        case .ended: return .bytes(0)
        // The input may be only a part of what was sent, so that this is no end in good order.
        case .truncated: return .failed(errno: ECONNRESET)
        case .failed(let error):
            tls.failed(error, inHandshake: !session.isEstablished)
            return refuse(session)
        }
    }

    private mutating func refuse(_ session: TLSSession) -> ByteStreamResult {
        session.sayEnd()
        state = .refused
        return .refused
    }

    mutating func write(_ bytes: UnsafeRawBufferPointer) -> ByteStreamResult {
        switch state {
        case .plain: return socket.write(bytes)
        case .undecided, .refused: return .failed(errno: EPIPE)
        case .tls(let session):
            switch session.write(bytes) {
            case .bytes(let count): return .bytes(count)
            case .wantsWrite: return .wouldBlock
            // Without renegotiation, a write never has to wait for a read.
            case .wantsRead, .ended, .truncated, .failed: return .failed(errno: EPIPE)
            }
        }
    }

    func closeForWriting() {
        if case .tls(let session) = state { session.sayEnd() }
        socket.closeForWriting()
    }

    func close() {
        if case .tls(let session) = state { session.sayEnd() }
        socket.close()
    }
}

extension ApplicationProtocol {
    /// The first byte of the protocol with this name, as in the session's `firstByte`.
    fileprivate var firstByte: UInt8? {
        switch self {
        case .http1: nil
        case .native: NativeSession.firstByte
        case .http2: UInt8(ascii: "P")
        }
    }
}
