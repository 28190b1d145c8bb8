import Base
import Messages
import Testing
import Wire

@testable import PosternBench

/// A REQUEST frame as its server would read it.
struct SentRequest {
    let stream: UInt32
    let service: String
    let method: String
    let payload: [UInt8]

    init(reading frame: [UInt8]) throws {
        let limits = Limits()
        let header = try frame.withUnsafeBytes { try #require(FrameHeader.read($0)) }
        try #require(header.type == .request && Int(header.payloadByteCount) == frame.count - FrameHeader.byteCount)
        let parts = try frame[FrameHeader.byteCount...].withUnsafeBytes { bytes in
            let envelope = try RequestEnvelope(reading: bytes, limits: limits.messages)
            return (
                String(decoding: envelope.service, as: UTF8.self), String(decoding: envelope.method, as: UTF8.self),
                [UInt8](envelope.payload)
            )
        }
        stream = header.stream
        (service, method, payload) = parts
    }
}
