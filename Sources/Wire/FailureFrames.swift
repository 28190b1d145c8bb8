// A RESPONSE that says no: google.rpc.Status with the details every failure of Postern carries.

public import Base
import Messages

extension ByteBuffer {
    /// Appends a RESPONSE with `failure` as its status.
    ///
    /// The status always has an ErrorInfo. It has BadRequest, RetryInfo, LocalizedMessage, Help and RequestInfo where
    /// the failure or `metadata` has their contents.
    public mutating func appendFailure(
        stream: UInt32, _ failure: Failure, metadata: OutgoingMetadata = OutgoingMetadata()
    ) {
        appendFailure(stream: stream, code: failure.code, message: failure.message, metadata: metadata) { status in
            status.appendDetails(of: failure, requestID: metadata.requestID)
        }
    }

    /// The same with details appended by `writeDetails`: fields number 3 (google.protobuf.Any) of google.rpc.Status.
    public mutating func appendFailure(
        stream: UInt32, code: StatusCode, message: String, metadata: OutgoingMetadata = OutgoingMetadata(),
        writeDetails: (inout ByteBuffer) -> Void
    ) {
        precondition(code != .ok, "a failure with status OK")
        let start = beginFrame(stream: stream, type: .response)
        appendField(1) { status in
            status.appendVarintField(1, UInt64(code.rawValue))
            status.appendBytesField(2, message.shown)
            writeDetails(&status)
        }
        let metadataByteCount = metadata.byteCount
        var writer = RawWriter(at: reserve(metadataByteCount))
        metadata.write(tag: 0x1A, to: &writer)
        commit(metadataByteCount)
        let fits = finishFrame(from: start, payloadMax: FrameHeader.payloadByteCountMax)
        precondition(fits, "a failure larger than any frame")
    }

    private mutating func appendDetails(of failure: Failure, requestID: UnsafeRawBufferPointer?) {
        appendDetail("ErrorInfo") { info in
            info.appendBytesField(1, failure.reason)
            info.appendBytesField(2, "postern")
            for entry in failure.metadata {
                info.appendField(3) { pair in
                    pair.appendBytesField(1, entry.key)
                    pair.appendBytesField(2, entry.value)
                }
            }
        }
        if !failure.violations.isEmpty {
            appendDetail("BadRequest") { badRequest in
                for violation in failure.violations {
                    badRequest.appendField(1) { message in
                        message.appendBytesField(1, violation.field)
                        message.appendBytesField(2, violation.description.shown)
                    }
                }
            }
        }
        if let delay = failure.retryAfter { appendRetryInfo(delay) }
        if let guidance = failure.guidance { appendGuidance(guidance) }
        if let requestID {
            appendDetail("RequestInfo") { $0.appendBytesField(1, requestID) }
        }
    }

    private mutating func appendRetryInfo(_ delay: Duration) {
        let (seconds, attoseconds) = max(delay, .zero).components
        appendDetail("RetryInfo") { info in
            info.appendField(1) { duration in
                duration.appendVarintField(1, UInt64(seconds))
                duration.appendVarintField(2, UInt64(attoseconds / 1_000_000_000))
            }
        }
    }

    private mutating func appendGuidance(_ guidance: Failure.Guidance) {
        if !guidance.message.isEmpty {
            appendDetail("LocalizedMessage") { message in
                message.appendBytesField(1, guidance.locale)
                message.appendBytesField(2, guidance.message)
            }
        }
        if !guidance.url.isEmpty {
            appendDetail("Help") { help in
                help.appendField(1) { $0.appendBytesField(2, guidance.url) }
            }
        }
    }

    /// One google.protobuf.Any in google.rpc.Status.details.
    private mutating func appendDetail(_ name: StaticString, _ write: (inout ByteBuffer) -> Void) {
        appendField(3) { any in
            any.appendField(1) { url in
                url.append(contentsOf: "type.googleapis.com/google.rpc.")
                url.append(contentsOf: name)
            }
            any.appendField(2, write)
        }
    }

    private mutating func append(contentsOf text: StaticString) {
        append(contentsOf: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
}

extension String {
    /// The text, cut to what an answer may hold. A caller's own text may be part of it, and an answer must stay smaller
    /// than its request.
    fileprivate var shown: String {
        utf8.count <= 2_000 ? self : String(decoding: utf8.prefix(2_000), as: UTF8.self)
    }
}
