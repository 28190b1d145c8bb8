import Base
import Glibc
import TLS

/// A socket of the load tool, plain or with TLS: bytes in and out. Neither `receive` nor `send` blocks.
final class ClientSocket {
    private static let readByteCount = 64 * 1024
    /// No server of ours changes its keys more often.
    private static let keyUpdateCountMax = 16

    let descriptor: Int32
    /// Nil: plain text.
    private let tls: TLSSession?
    private let silenceSecondsMax: Int

    /// Connects, with a TLS handshake if the address has TLS. Data that the server sent after it goes to `input`.
    init(to address: ServerAddress, from source: String?, into input: inout ByteBuffer) throws(BenchError) {
        let descriptor = try address.connect(from: source)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        self.descriptor = descriptor
        silenceSecondsMax = address.silenceSecondsMax
        do throws(TLSError) {
            tls = try address.tls.map { context throws(TLSError) in
                let session = try TLSSession(
                    context, descriptor: descriptor, keyUpdateCountMax: Self.keyUpdateCountMax)
                try session.verifyServer(named: address.host)
                return session
            }
        } catch {
            throw BenchError(.notReady, "\(address): \(error)")
        }
        try shakeHands(with: address, into: &input)
    }

    deinit { close(descriptor) }

    private func shakeHands(with address: ServerAddress, into input: inout ByteBuffer) throws(BenchError) {
        guard let tls else { return }
        while !tls.isEstablished {
            switch tls.read(into: input.reserve(Self.readByteCount), byteCount: Self.readByteCount) {
            case .bytes(let count): input.commit(count)
            case .wantsRead: if !tls.isEstablished { try wait(for: POLLIN) }
            case .wantsWrite: try wait(for: POLLOUT)
            case .ended, .truncated: throw BenchError(.notReady, "\(address) ended the handshake")
            case .failed(let error):
                throw BenchError(.notReady, "\(address): \(tls.refusedCertificate ?? "\(error)")")
            }
        }
    }

    func wait(for events: Int32) throws(BenchError) {
        var entry = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
        while true {
            let count = poll(&entry, 1, Int32(clamping: silenceSecondsMax * 1_000))
            if count > 0 { return }
            guard count < 0, errno == EINTR else {
                throw BenchError(.failed, "the server did nothing for \(silenceSecondsMax) s")
            }
        }
    }

    /// One read into `input`.
    func receive(into input: inout ByteBuffer) -> Transfer {
        if let tls { return receive(into: &input, by: tls) }
        while true {
            let count = recv(descriptor, input.reserve(Self.readByteCount), Self.readByteCount, 0)
            if count >= 0 {
                input.commit(count)
                return .bytes(count)
            }
            if errno == EAGAIN { return .wouldBlock }
            if errno != EINTR { return .failed }
        }
    }

    /// Reads until the session holds no input for which the socket does not become readable.
    private func receive(into input: inout ByteBuffer, by tls: TLSSession) -> Transfer {
        var received = 0
        repeat {
            switch tls.read(into: input.reserve(Self.readByteCount), byteCount: Self.readByteCount) {
            case .bytes(let count):
                input.commit(count)
                received += count
            // The load does not wait to send what a key update asks for: there is output again soon.
            case .wantsRead, .wantsWrite: return received > 0 ? .bytes(received) : .wouldBlock
            case .ended, .truncated: return .bytes(received)
            case .failed: return .failed
            }
        } while tls.hasPendingInput
        return .bytes(received)
    }

    /// One write from `output`, which must not be empty.
    func send(from output: inout ByteBuffer) -> Transfer {
        if let tls {
            switch tls.write(output.readable) {
            case .bytes(let count):
                output.consume(count)
                return .bytes(count)
            case .wantsRead, .wantsWrite: return .wouldBlock
            case .ended, .truncated, .failed: return .failed
            }
        }
        while true {
            let bytes = output.readable
            let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            if count >= 0 {
                output.consume(count)
                return .bytes(count)
            }
            if errno == EAGAIN { return .wouldBlock }
            if errno != EINTR { return .failed }
        }
    }
}
