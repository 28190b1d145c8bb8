// The RESPONSE of a failed call: google.rpc.Status with the details that every failure of Postern carries.

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

    /// Appends `failure` as the fields of a google.rpc.Status, with the same details.
    public mutating func appendStatus(of failure: Failure, requestID: UnsafeRawBufferPointer?) {
        // Proof: the codes are 0 to 16.
        appendVarintField(GoogleStatus.FieldNumber.code, UInt64(failure.code.rawValue))
        appendBytesField(GoogleStatus.FieldNumber.message, failure.message.shown)
        appendDetails(of: failure, requestID: requestID)
    }

    /// Appends a RESPONSE with a failure. `writeDetails` appends the details (google.protobuf.Any) of
    /// google.rpc.Status.
    public mutating func appendFailure(
        stream: UInt32, code: StatusCode, message: String, metadata: OutgoingMetadata = OutgoingMetadata(),
        writeDetails: (inout ByteBuffer) -> Void
    ) {
        precondition(code != .ok, "a failure with status OK")
        let start = beginFrame(stream: stream, type: .response)
        appendField(WireResponse.FieldNumber.status) { status in
            status.appendVarintField(GoogleStatus.FieldNumber.code, UInt64(code.rawValue))
            status.appendBytesField(GoogleStatus.FieldNumber.message, message.shown)
            writeDetails(&status)
        }
        appendMetadata(metadata, byteCount: metadata.byteCount, field: WireResponse.FieldNumber.metadata)
        let fits = finishFrame(from: start, payloadMax: FrameHeader.payloadByteCountMax)
        precondition(fits, "a failure larger than any frame")
    }

    private mutating func appendDetails(of failure: Failure, requestID: UnsafeRawBufferPointer?) {
        appendDetail("ErrorInfo") { info in
            info.appendBytesField(GoogleErrorInfo.FieldNumber.reason, failure.reason)
            info.appendBytesField(GoogleErrorInfo.FieldNumber.domain, "postern")
            for entry in failure.metadata {
                info.appendField(GoogleErrorInfo.FieldNumber.metadata) { pair in
                    pair.appendBytesField(GoogleErrorInfo.MetadataEntry.FieldNumber.key, entry.key)
                    pair.appendBytesField(GoogleErrorInfo.MetadataEntry.FieldNumber.value, entry.value)
                }
            }
        }
        if !failure.violations.isEmpty {
            appendDetail("BadRequest") { badRequest in
                for violation in failure.violations {
                    badRequest.appendField(GoogleBadRequest.FieldNumber.fieldViolations) { message in
                        message.appendBytesField(GoogleBadRequest.FieldViolation.FieldNumber.field, violation.field)
                        message.appendBytesField(
                            GoogleBadRequest.FieldViolation.FieldNumber.description, violation.description.shown)
                    }
                }
            }
        }
        if let delay = failure.retryAfter { appendRetryInfo(delay) }
        if let guidance = failure.guidance { appendGuidance(guidance) }
        if let requestID {
            appendDetail("RequestInfo") { $0.appendBytesField(GoogleRequestInfo.FieldNumber.requestID, requestID) }
        }
    }

    private mutating func appendRetryInfo(_ delay: Duration) {
        let (seconds, attoseconds) = max(delay, .zero).components
        appendDetail("RetryInfo") { info in
            info.appendField(GoogleRetryInfo.FieldNumber.retryDelay) { duration in
                duration.appendVarintField(ProtobufDuration.FieldNumber.seconds, UInt64(seconds))
                duration.appendVarintField(ProtobufDuration.FieldNumber.nanos, UInt64(attoseconds / 1_000_000_000))
            }
        }
    }

    private mutating func appendGuidance(_ guidance: Failure.Guidance) {
        if !guidance.message.isEmpty {
            appendDetail("LocalizedMessage") { message in
                message.appendBytesField(GoogleLocalizedMessage.FieldNumber.locale, guidance.locale)
                message.appendBytesField(GoogleLocalizedMessage.FieldNumber.message, guidance.message)
            }
        }
        if !guidance.url.isEmpty {
            appendDetail("Help") { help in
                help.appendField(GoogleHelp.FieldNumber.links) {
                    $0.appendBytesField(GoogleHelp.Link.FieldNumber.url, guidance.url)
                }
            }
        }
    }

    /// One google.protobuf.Any in google.rpc.Status.details.
    private mutating func appendDetail(_ name: StaticString, _ write: (inout ByteBuffer) -> Void) {
        appendField(GoogleStatus.FieldNumber.details) { any in
            any.appendField(ProtobufAny.FieldNumber.typeURL) { url in
                url.append(contentsOf: "type.googleapis.com/google.rpc.")
                url.append(contentsOf: name)
            }
            any.appendField(ProtobufAny.FieldNumber.value, write)
        }
    }

    private mutating func append(contentsOf text: StaticString) {
        append(contentsOf: text.bytes)
    }
}

extension String {
    /// The text, cut to the length that an answer may hold. A caller's own text may be part of it, and an answer must
    /// stay smaller than its request.
    fileprivate var shown: String {
        utf8.count <= 2_000 ? self : String(decoding: utf8.prefix(2_000), as: UTF8.self)
    }
}
