import Base
import Messages
import PosternClient
import TestSupport
import Testing
import Wire

@Suite struct FailureDecodingTests {
    /// The status as the server writes it.
    private func status(of failure: Failure, requestID: [UInt8] = []) throws -> GoogleStatus {
        var buffer = ByteBuffer()
        requestID.withUnsafeBytes { bytes in
            buffer.appendFailure(
                stream: 1, failure, metadata: OutgoingMetadata(requestID: bytes.isEmpty ? nil : bytes))
        }
        let response = try WireResponse(decoding: Array(buffer.copyBytes().dropFirst(FrameHeader.byteCount)))
        return try #require(response.status)
    }

    @Test func `Everything the server writes is read back`() throws {
        let failure = Failure(
            .resourceExhausted, "TOO_MANY_ATTEMPTS_TRY_LATER", "Wait.",
            metadata: [.init("a", "1"), .init("b", "2")],
            violations: [.init(field: "email", description: "is no email")], retryAfter: .milliseconds(1_500),
            guidance: .init(locale: "de", message: "Bitte warten.", url: "https://example.org"))
        #expect(Failure(try status(of: failure)) == failure)
    }

    @Test func `The request's id is an entry of the metadata`() throws {
        let failure = Failure(try status(of: Failure(.internal, "INTERNAL", ""), requestID: [UInt8]("r-7".utf8)))
        #expect(failure.metadataValue("request_id") == "r-7")
        #expect(failure.metadataValue("other") == nil)
    }

    @Test func `Without details the code's name is the reason`() {
        #expect(Failure(GoogleStatus(code: 5, message: "gone")) == Failure(.notFound, "NOT_FOUND", "gone"))
        #expect(Failure(GoogleStatus(code: 99)).code == .unknown)
    }

    @Test(arguments: [
        (ProtobufDuration(seconds: 3, nanos: 500_000_000), Duration.milliseconds(3_500)),
        (ProtobufDuration(seconds: .max, nanos: .max), .days(365)),
        (ProtobufDuration(seconds: .min, nanos: .min), .zero), (ProtobufDuration(seconds: 0, nanos: -1), .zero),
    ])
    func `The time to wait is not negative, and a year at most`(told: ProtobufDuration, expected: Duration) {
        let detail = ProtobufAny(
            typeURL: "type.googleapis.com/google.rpc.RetryInfo", value: GoogleRetryInfo(retryDelay: told).encoded())
        #expect(Failure(GoogleStatus(code: 14, details: [detail])).retryAfter == expected)
    }

    @Test func `Details that are unknown or broken are left out`() {
        let details = [
            ProtobufAny(typeURL: "type.googleapis.com/google.rpc.QuotaFailure", value: [1]),
            ProtobufAny(typeURL: "type.googleapis.com/google.rpc.ErrorInfo", value: [0xFF]),
            ProtobufAny(typeURL: "", value: []),
        ]
        #expect(Failure(GoogleStatus(code: 13, details: details)) == Failure(.internal, "INTERNAL", ""))
    }
}
