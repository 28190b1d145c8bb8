// Cuts a connection's input into frames. Pull parser: the connection reads into its buffer and asks for the next step.
// Nothing is copied: a payload is a slice of the input.

public import Base

/// Finds the frames in a connection's input buffer; owned by the connection, one per direction.
///
/// The decoder checks the length before it waits for the body. A frame above the current limit is reported once and
/// then skipped as it arrives, without being kept.
public struct FrameDecoder: Sendable {
    public enum Step {
        /// At least `byteCountWanted` more bytes complete the frame (or its header); a hint for the next read. The peer
        /// chose this number: do not reserve memory for it before the bytes come.
        case needMore(byteCountWanted: Int)
        /// `payload` is valid until the next call of `next` or the next write to the input.
        case frame(FrameHeader, payload: UnsafeRawBufferPointer)
        /// A frame above `payloadMax`, at most the hard cap; its payload is never handed out.
        case oversized(FrameHeader)
        /// A frame above the hard cap. The bytes after it cannot be understood, so every further call returns this
        /// again.
        case violation(FrameHeader)
    }

    private enum State {
        /// At the start of a frame. Next: `delivered`, `skipping`, `failed`.
        case reading
        /// The frame handed out last still lies at the front of the input. Next: `reading`.
        case delivered(byteCount: Int)
        /// This much of an oversized frame is still to be skipped. Next: `reading`.
        case skipping(byteCount: Int)
        /// Next: none.
        case failed(FrameHeader)
    }

    private let payloadHardMax: Int
    private var state = State.reading

    /// The time of the `needMore` that first saw the present frame. Nil between frames. The deadline for a whole frame
    /// counts from here, however often a byte of it arrives.
    public private(set) var partialSince: Instant?

    public init(payloadHardMax: Int) {
        self.payloadHardMax = min(payloadHardMax, FrameHeader.payloadByteCountMax)
    }

    /// The next frame, or how many bytes are missing. Consumes the frame that was handed out before from `input`.
    public mutating func next(in input: inout ByteBuffer, payloadMax: Int, now: Instant) -> Step {
        switch state {
        case .reading: break
        case .delivered(let byteCount): input.consume(byteCount)
        case .skipping(let byteCount):
            let available = min(byteCount, input.readableByteCount)
            input.consume(available)
            if available < byteCount {
                state = .skipping(byteCount: byteCount - available)
                if partialSince == nil { partialSince = now }
                return .needMore(byteCountWanted: byteCount - available)
            }
            partialSince = nil
        case .failed(let header): return .violation(header)
        }
        state = .reading
        return readFrame(in: input.readable, payloadMax: payloadMax, now: now)
    }

    private mutating func readFrame(in readable: UnsafeRawBufferPointer, payloadMax: Int, now: Instant) -> Step {
        guard let header = FrameHeader.read(readable) else {
            if readable.isEmpty {
                partialSince = nil
            } else if partialSince == nil {
                partialSince = now
            }
            return .needMore(byteCountWanted: FrameHeader.byteCount - readable.count)
        }
        let payloadByteCount = Int(header.payloadByteCount)
        if payloadByteCount > payloadHardMax {
            state = .failed(header)
            return .violation(header)
        }
        if payloadByteCount > payloadMax {
            state = .skipping(byteCount: FrameHeader.byteCount + payloadByteCount)
            return .oversized(header)
        }
        let frameByteCount = FrameHeader.byteCount + payloadByteCount
        guard readable.count >= frameByteCount else {
            if partialSince == nil { partialSince = now }
            return .needMore(byteCountWanted: frameByteCount - readable.count)
        }
        state = .delivered(byteCount: frameByteCount)
        partialSince = nil
        return .frame(
            header, payload: UnsafeRawBufferPointer(rebasing: readable[FrameHeader.byteCount..<frameByteCount]))
    }
}
