import Base
import Messages
import TestSupport
import Wire

@testable import Service

extension RawClient {
    /// Calls a method; returns its failure, if it has one at once. A stream that was let in is cancelled.
    func refusal(of method: MethodDescriptor, _ request: some Message) throws -> Failure? {
        let kind: StreamKind =
            method.requestStreaming ? .remoteOpen : method.responseStreaming ? .remoteClosed : .unary
        let stream = nextStream()
        try send(self.request(method.fullName, request, stream: stream, kind: kind))
        guard kind != .unary else { return try readFailure(of: stream) }
        // A stream that was let in says nothing by itself. The answer to this second call comes after a refusal of
        // the first, also where both have to wait for a cluster's journal.
        let fence = nextStream()
        try send(
            self.request(
                "postern.v1.Project/ServerInfo", ProjectServerInfoRequest(), stream: fence,
                metadata: [.init(key: "x-postern-consistency", value: "latest")]))
        var failure: Failure?
        while true {
            let frame = try readFrame()
            guard frame.header.type == .response else { continue }
            if frame.header.stream == fence { break }
            if frame.header.stream == stream { failure = try Self.failure(in: frame) }
        }
        var cancel = ByteBuffer()
        ControlFrame.cancel(stream: stream, .cancelled).append(to: &cancel)
        try send(cancel.copyBytes())
        return failure
    }

    private func readFailure(of stream: UInt32) throws -> Failure? {
        while true {
            let frame = try readFrame()
            if frame.header.type == .response, frame.header.stream == stream { return try Self.failure(in: frame) }
        }
    }

    private static func failure(in frame: Frame) throws -> Failure? {
        do {
            _ = try response(frame, returning: AnyMessage.self)
            return nil
        } catch let failure as Failure {
            return failure
        }
    }
}

/// A message given by its bytes.
struct AnyMessage: Message {
    var bytes: [UInt8]

    init() { bytes = [] }
    init(_ bytes: [UInt8]) { self.bytes = bytes }
    init(_ message: some Message) { bytes = message.encoded() }
    init(decoding bytes: UnsafeRawBufferPointer, limits: MessageLimits) throws(DecodeError) {
        self.bytes = [UInt8](bytes)
    }
    func encode(into buffer: inout ByteBuffer) { buffer.append(contentsOf: bytes) }
    var encodedByteCount: Int { bytes.count }
}
