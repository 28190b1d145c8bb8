// REQUEST, RESPONSE and DATA, written straight into the output buffer. The message comes last in its envelope, so that
// it is packed once, in the buffer that it is sent from.

public import Base
import Messages

extension ByteBuffer {
    /// A RESPONSE with status OK.
    ///
    /// Returns false and appends nothing if the frame's payload would be above `payloadMax` (the peer's limit,
    /// `ConnectionState.peerPayloadMax`): answer with a failure then.
    @discardableResult
    public mutating func appendResponse(
        stream: UInt32, metadata: OutgoingMetadata = OutgoingMetadata(), payload: UnsafeRawBufferPointer,
        payloadMax: Int = FrameHeader.payloadByteCountMax
    ) -> Bool {
        let metadataByteCount = metadata.byteCount
        let byteCount = metadataByteCount + (payload.isEmpty ? 0 : RawWriter.fieldByteCount(payload.count))
        guard byteCount <= min(payloadMax, FrameHeader.payloadByteCountMax) else { return false }
        var writer = RawWriter(at: reserve(FrameHeader.byteCount + byteCount))
        writer.header(FrameHeader(payloadByteCount: UInt32(byteCount), stream: stream, type: .response))
        if metadataByteCount > 0 { metadata.write(field: WireResponse.FieldNumber.metadata, to: &writer) }
        if !payload.isEmpty { writer.lengthDelimited(WireResponse.FieldNumber.payload, payload) }
        commit(FrameHeader.byteCount + byteCount)
        return true
    }

    /// The same, with the message's bytes appended by `write`. When `write` throws, nothing is appended.
    @discardableResult
    public mutating func appendResponse(
        stream: UInt32, metadata: OutgoingMetadata = OutgoingMetadata(),
        payloadMax: Int = FrameHeader.payloadByteCountMax, write: (inout ByteBuffer) throws -> Void
    ) rethrows -> Bool {
        let metadataByteCount = metadata.byteCount
        let start = beginFrame(stream: stream, type: .response, reserving: metadataByteCount)
        appendMetadata(metadata, byteCount: metadataByteCount, field: WireResponse.FieldNumber.metadata)
        do {
            try appendField(WireResponse.FieldNumber.payload, write)
        } catch {
            truncate(to: start)
            throw error
        }
        return finishFrame(from: start, payloadMax: payloadMax)
    }

    /// A REQUEST; `kind` gives the flags, `timeoutNanoseconds` 0 leaves the deadline to the server.
    ///
    /// Returns false and appends nothing if the payload would be above `payloadMax`.
    @discardableResult
    public mutating func appendRequest(
        stream: UInt32, kind: StreamKind = .unary, service: Text, method: Text, timeoutNanoseconds: Int64 = 0,
        metadata: OutgoingMetadata = OutgoingMetadata(), payloadMax: Int = FrameHeader.payloadByteCountMax,
        write: (inout ByteBuffer) -> Void
    ) -> Bool {
        let start = beginFrame(stream: stream, type: .request, flags: kind.flags)
        appendBytesField(WireRequest.FieldNumber.service, service)
        appendBytesField(WireRequest.FieldNumber.method, method)
        appendVarintField(WireRequest.FieldNumber.timeoutNano, UInt64(bitPattern: timeoutNanoseconds))
        appendMetadata(metadata, byteCount: metadata.byteCount, field: WireRequest.FieldNumber.metadata)
        appendField(WireRequest.FieldNumber.payload, write)
        return finishFrame(from: start, payloadMax: payloadMax)
    }

    /// DATA with one message, appended by `write`.
    ///
    /// Returns false and appends nothing if the message is above `payloadMax`.
    @discardableResult
    public mutating func appendData(
        stream: UInt32, payloadMax: Int = FrameHeader.payloadByteCountMax, write: (inout ByteBuffer) -> Void
    ) -> Bool {
        let start = beginFrame(stream: stream, type: .data)
        write(&self)
        return finishFrame(from: start, payloadMax: payloadMax)
    }

    /// DATA with one message, if `write` makes one: it appends the message and returns true, or returns false.
    ///
    /// Nothing is appended when there is no message, when it is above `payloadMax`, and when `write` throws.
    public mutating func appendData(
        stream: UInt32, payloadMax: Int, ifAny write: (inout ByteBuffer) throws -> Bool
    ) rethrows -> DataAppended {
        let start = beginFrame(stream: stream, type: .data)
        do {
            guard try write(&self) else {
                truncate(to: start)
                return .nothing
            }
        } catch {
            truncate(to: start)
            throw error
        }
        let payloadByteCount = readableByteCount - start - FrameHeader.byteCount
        guard finishFrame(from: start, payloadMax: payloadMax) else { return .tooLarge }
        return .message(payloadByteCount: payloadByteCount)
    }

    /// DATA without a message that closes the sender's side. From a server it ends the stream with status OK.
    public mutating func appendDataEnd(stream: UInt32) {
        FrameHeader(payloadByteCount: 0, stream: stream, type: .data, flags: [.remoteClosed, .noData]).append(to: &self)
    }
}

/// The result of `appendData` with a message that may be absent.
public enum DataAppended: Equatable, Sendable {
    case message(payloadByteCount: Int)
    case nothing
    case tooLarge
}

extension ByteBuffer {
    /// Writes a header whose length `finishFrame` fills in. Returns where the frame begins in `readable`.
    mutating func beginFrame(
        stream: UInt32, type: FrameType, flags: FrameFlags = [], reserving byteCount: Int = 0
    ) -> Int {
        let start = readableByteCount
        _ = reserve(FrameHeader.byteCount + byteCount)
        FrameHeader(payloadByteCount: 0, stream: stream, type: type, flags: flags).append(to: &self)
        return start
    }

    /// Fills in the length of the frame that `beginFrame` began at `start`. Returns false, and removes the frame, if
    /// its payload is above `payloadMax`.
    mutating func finishFrame(from start: Int, payloadMax: Int) -> Bool {
        let byteCount = readableByteCount - start - FrameHeader.byteCount
        guard byteCount <= min(payloadMax, FrameHeader.payloadByteCountMax) else {
            truncate(to: start)
            return false
        }
        overwrite(bigEndian: UInt32(byteCount), at: start)
        return true
    }

    /// Appends `metadata` as fields with this number. `byteCount` is `metadata.byteCount`.
    mutating func appendMetadata(_ metadata: OutgoingMetadata, byteCount: Int, field number: Int) {
        guard byteCount > 0 else { return }
        var writer = RawWriter(at: reserve(byteCount))
        metadata.write(field: number, to: &writer)
        commit(byteCount)
    }
}
