import Base
import Messages
import Synchronization
import TLS
import Wire

@testable import Transport

/// Answers every request with its own payload; a call named "Hold" is never answered.
final class Echo: Dispatcher {
    static let echo = "test.Service/Echo"
    static let hold = "test.Service/Hold"
    /// The method that answers with the peer's address.
    static let who = "test.Service/Who"
    /// The method whose request names the line of its connection, if it is the connection's first request.
    static let enter = "test.Service/Enter"
    /// The line of the other connections.
    static let line: Text = "tests"

    /// The names in clients' certificates, in the order of their handshakes.
    let identified = Mutex<[PeerCertificate]>([])

    func identified(by certificate: PeerCertificate, _ connection: isolated Connection) {
        identified.withLock { $0.append(certificate) }
    }

    func makeConnectionContext() -> AnyObject { self }

    func authenticate(_ authorization: Text, on connection: isolated Connection) {}

    func handle(
        _ request: RequestEnvelope, stream: UInt32, kind: StreamKind, on connection: isolated Connection
    ) {
        let isEntering = request.method.elementsEqual("Enter".utf8)
        let line = isEntering ? (try? WireKeyValue(decoding: request.payload))?.key : nil
        connection.authenticated(line: line ?? Self.line)
        if request.method.elementsEqual("Hold".utf8) {
            connection.run(stream: stream, kind: kind, deadline: .distantFuture, requestByteCount: 0) { _ in
                try? await Promise<Void>().cancellableValue()
            }
            return
        }
        let isWho = request.method.elementsEqual("Who".utf8)
        let payload = isWho ? WireKeyValue(key: connection.peerAddress).encoded() : [UInt8](request.payload)
        connection.respond(stream: stream, metadata: OutgoingMetadata()) { $0.append(contentsOf: payload) }
    }
}
