import Base
import Messages
import Wire

/// One unary call of a `GRPCConnection`: its request until it is sent, and its answer as far as it came.
final class GRPCCall {
    private static let prefixByteCount = 5

    /// The number of its REQUEST, which its RESPONSE has too.
    private(set) var nativeStream: UInt32 = 0
    /// The message with its prefix, and how much of it is sent.
    private var request: [UInt8] = []
    private var sentByteCount = 0
    private var answer: [UInt8] = []
    private var httpStatus: [UInt8] = []
    private var status: [UInt8] = []
    /// google.rpc.Status, in base64.
    private var details: [UInt8] = []

    func begin(nativeStream: UInt32, _ message: UnsafeRawBufferPointer) {
        self.nativeStream = nativeStream
        sentByteCount = 0
        request.removeAll(keepingCapacity: true)
        answer.removeAll(keepingCapacity: true)
        httpStatus.removeAll(keepingCapacity: true)
        status.removeAll(keepingCapacity: true)
        details.removeAll(keepingCapacity: true)
        // Not compressed; then the length.
        request.append(0)
        withUnsafeBytes(of: UInt32(clamping: message.count).bigEndian) { request.append(contentsOf: $0) }
        request.append(contentsOf: message)
    }

    /// Copies the next bytes of the request. Returns their count, and whether they are the last.
    func nextBytes(into buffer: UnsafeMutableRawBufferPointer) -> (count: Int, isLast: Bool) {
        let count = min(buffer.count, request.count - sentByteCount)
        request.withUnsafeBytes { bytes in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[sentByteCount..<sentByteCount + count]))
        }
        sentByteCount += count
        return (count, sentByteCount == request.count)
    }

    func received(_ bytes: UnsafeRawBufferPointer) { answer.append(contentsOf: bytes) }

    func received(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        if name.elementsEqual("grpc-status".utf8) {
            status = [UInt8](value)
        } else if name.elementsEqual(":status".utf8) {
            httpStatus.append(contentsOf: value)
        } else if name.elementsEqual("grpc-status-details-bin".utf8) {
            details = [UInt8](value)
        }
    }

    /// Appends the RESPONSE for the end of the call. A message is complete only with the status after it.
    func appendResponse(to buffer: inout ByteBuffer) {
        guard let code = Int32(String(decoding: status, as: UTF8.self)) else {
            let http = String(decoding: httpStatus, as: UTF8.self)
            return appendFailure(http.isEmpty || http == "200" ? "STREAM_RESET" : "HTTP_\(http)", to: &buffer)
        }
        guard code == 0 else {
            let padding = [UInt8](repeating: UInt8(ascii: "="), count: (4 - details.count % 4) % 4)
            let status = Base64.standard.decode(details + padding).flatMap { $0.isEmpty ? nil : $0 }
            return appendStatus(status ?? GoogleStatus(code: code).encoded(), to: &buffer)
        }
        answer.withUnsafeBytes { bytes in
            guard bytes.count >= Self.prefixByteCount, bytes[0] == 0,
                Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 1, as: UInt32.self)))
                    == bytes.count - Self.prefixByteCount
            else { return appendFailure("MALFORMED_ANSWER", to: &buffer) }
            buffer.appendResponse(
                stream: nativeStream, payload: UnsafeRawBufferPointer(rebasing: bytes[Self.prefixByteCount...]))
        }
    }

    private func appendFailure(_ reason: String, to buffer: inout ByteBuffer) {
        let info = GoogleErrorInfo(reason: Text(reason), domain: "postern-bench")
        let detail = ProtobufAny(typeURL: "type.googleapis.com/google.rpc.ErrorInfo", value: info.encoded())
        appendStatus(GoogleStatus(code: StatusCode.unknown.rawValue, details: [detail]).encoded(), to: &buffer)
    }

    private func appendStatus(_ status: [UInt8], to buffer: inout ByteBuffer) {
        var payload = ByteBuffer()
        payload.appendBytesField(WireResponse.FieldNumber.status, status)
        FrameHeader(payloadByteCount: UInt32(payload.readableByteCount), stream: nativeStream, type: .response)
            .append(to: &buffer)
        buffer.append(contentsOf: payload.readable)
    }
}
