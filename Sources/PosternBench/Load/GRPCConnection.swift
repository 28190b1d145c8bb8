import Base
import Glibc
import HTTP2
import Messages
import Wire

/// A connection of gRPC over HTTP/2. A load loop uses it like a connection of native frames: REQUESTs become calls when
/// they are sent, and the ends of calls become RESPONSEs. One owner, not thread-safe.
///
/// Each call carries the credential, as usual in gRPC. The first call is made before the load: a server tells a
/// connection how many calls it may make at once only after it has seen a credential.
final class GRPCConnection: SocketLink {
    /// The windows are larger than what can be on its way, so neither one answer nor all answers together need credit.
    private static let streamWindow = 16 << 20
    private static let connectionWindow = 1 << 30

    let socket: ClientSocket
    let engine = HTTP2Engine(.client)
    /// RESPONSE frames, made from the server's answers.
    var input = ByteBuffer()
    /// REQUEST frames that are not calls yet.
    var output = ByteBuffer()
    /// Bytes of HTTP/2, in and out.
    private var received = ByteBuffer()
    private var sending = ByteBuffer()
    private let isTLS: Bool
    private let authority: [UInt8]
    private let authorization: [UInt8]
    private var path: [UInt8] = []
    private var nextStream: UInt32 = 1
    private(set) var streamsMax = 0
    /// The calls that are under way, by the HTTP/2 number of their stream; and finished calls, which are used again.
    var calls: [UInt32: GRPCCall] = [:]
    var spares: [GRPCCall] = []
    /// The call whose header fields are being read.
    var headersOf: GRPCCall?
    var consumedByteCount = 0

    /// Connects, and makes the first call.
    init(to address: ServerAddress, authorization: Text, from source: String? = nil) throws(BenchError) {
        isTLS = address.tls != nil
        authority = [UInt8](address.description.utf8)
        self.authorization = [UInt8](authorization.bytes)
        socket = try ClientSocket(to: address, from: source, into: &received)
        engine.events = self
        engine.submit(
            HTTP2Settings(
                streamsMax: 0, initialWindow: Self.streamWindow, headerListByteCountMax: 64 * 1024))
        engine.setConnectionWindow(Self.connectionWindow)
        try introduce(to: address)
        streamsMax = engine.peerStreamsMax
    }

    var descriptor: Int32 { socket.descriptor }

    var hasOutput: Bool { !output.isEmpty || !sending.isEmpty }

    /// Nil when the ids are used up, after 2^30 requests.
    func takeStream() -> UInt32? {
        guard nextStream <= StreamID.max else { return nil }
        defer { nextStream += 2 }
        return nextStream
    }

    private func introduce(to address: ServerAddress) throws(BenchError) {
        guard let stream = takeStream() else { return }
        output.appendRequest(stream: stream, service: "postern.v1.Project", method: "WhoAmI") {
            ProjectWhoAmIRequest().encode(into: &$0)
        }
        var answer: CallResult?
        var reason: String?
        while answer == nil {
            while hasOutput {
                guard case .bytes = send() else {
                    try socket.wait(for: POLLOUT)
                    continue
                }
            }
            switch receive() {
            case .bytes(0), .failed:
                throw BenchError(.notReady, "\(address) closed the connection: does it speak gRPC?")
            case .wouldBlock: try socket.wait(for: POLLIN)
            case .bytes:
                takeFrames { header, payload in
                    answer = Connection.result(header, payload)
                    if case .refused(let given) = answer { reason = given }
                }
            }
        }
        if let reason { throw BenchError(.notReady, "\(address): \(reason)") }
    }

    // MARK: Bytes

    func receive() -> Transfer {
        let transfer = socket.receive(into: &received)
        guard case .bytes(let count) = transfer else { return transfer }
        guard count > 0 else { return .bytes(0) }
        guard engine.receive(received.readable) else { return .failed }
        received.consume(received.readableByteCount)
        if consumedByteCount > 0 { engine.consumeOfConnection(consumedByteCount) }
        consumedByteCount = 0
        engine.send { sending.append(contentsOf: $0) }
        return transfer
    }

    func send() -> Transfer {
        if !output.isEmpty { beginCalls() }
        engine.send { sending.append(contentsOf: $0) }
        return sending.isEmpty ? .bytes(0) : socket.send(from: &sending)
    }

    private func beginCalls() {
        while let header = FrameHeader.read(output.readable) {
            let end = FrameHeader.byteCount + Int(header.payloadByteCount)
            if header.type == .request {
                begin(
                    header.stream, UnsafeRawBufferPointer(rebasing: output.readable[FrameHeader.byteCount..<end]))
            }
            output.consume(end)
        }
    }

    private func begin(_ stream: UInt32, _ bytes: UnsafeRawBufferPointer) {
        var fields = FieldReader(bytes)
        var message = UnsafeRawBufferPointer(rebasing: bytes[..<0])
        path.removeAll(keepingCapacity: true)
        while let field = try? fields.next() {
            guard case .bytes(let content) = field.value else { continue }
            switch field.number {
            case WireRequest.FieldNumber.service, WireRequest.FieldNumber.method:
                path.append(UInt8(ascii: "/"))
                path.append(contentsOf: content)
            case WireRequest.FieldNumber.payload: message = content
            default: break
            }
        }
        let call = spares.popLast() ?? GRPCCall()
        call.begin(nativeStream: stream, message)
        addFields()
        let number = engine.request(hasBody: true)
        // A server that said GOAWAY takes no more calls.
        guard number > 0 else { return call.appendResponse(to: &input) }
        calls[number] = call
    }

    private func addFields() {
        let fields = engine.fields
        fields.add(":method", "POST")
        fields.add(":scheme", isTLS ? "https" : "http")
        path.withUnsafeBytes { fields.add(":path", repeated: $0) }
        authority.withUnsafeBytes { fields.add(":authority", repeated: $0) }
        fields.add("te", "trailers")
        fields.add("content-type", "application/grpc")
        fields.add("user-agent", "postern-bench")
        authorization.withUnsafeBytes { fields.add("authorization", repeated: $0) }
    }
}
