// Flow control of one stream, for DATA only. A frame costs its bytes on the wire, header included, so that empty
// messages are not free. A sender needs credit above zero and may then send one whole message, whatever its size: there
// is no fragmentation, and a message larger than the window must get through.

import Base

/// The credit of both sides on a stream: how many bytes each may still send.
struct StreamWindow: Sendable {
    /// The window until HELLO names another.
    static let initialDefault = 64 * 1024
    static let creditMax = Int(Int32.max)
    /// For peers without HELLO: ttrpc has no flow control.
    static let unlimited = Int.max / 2

    private(set) var sendCredit: Int
    private var receiveCredit: Int
    /// Bytes that the reader took and that are not given back as credit yet.
    private var taken = 0

    init(send: Int, receive: Int) {
        self.sendCredit = send
        self.receiveCredit = receive
    }

    /// Never below the default, which the client may use up before it has our HELLO.
    static func initialReceive(_ limits: Limits) -> Int { min(max(limits.streamWindow, initialDefault), creditMax) }

    static func cost(_ payloadByteCount: Int) -> Int { FrameHeader.byteCount + payloadByteCount }

    /// Counts a received frame. Returns false when the peer had no credit left.
    mutating func received(_ payloadByteCount: Int) -> Bool {
        guard receiveCredit > 0 else { return false }
        receiveCredit -= Self.cost(payloadByteCount)
        return true
    }

    /// The reader took a message. Returns the credit to give back, if it is half of the window or more.
    mutating func took(_ payloadByteCount: Int, window: Int) -> UInt32? {
        taken += Self.cost(payloadByteCount)
        guard taken >= window / 2 else { return nil }
        let credit = taken
        receiveCredit += credit
        taken = 0
        return UInt32(clamping: credit)
    }

    mutating func sent(_ payloadByteCount: Int) {
        precondition(sendCredit > 0, "DATA sent without credit")
        sendCredit -= Self.cost(payloadByteCount)
    }

    enum Grant { case opened, unchanged, overflow }

    /// Adds credit, from WINDOW or from the difference that a HELLO makes. `opened`: sending was stopped and may go on.
    mutating func granted(_ credit: Int) -> Grant {
        let wasClosed = sendCredit <= 0
        let (sum, overflow) = sendCredit.addingReportingOverflow(credit)
        guard !overflow, sum <= Self.creditMax else { return .overflow }
        sendCredit = sum
        return wasClosed && sum > 0 ? .opened : .unchanged
    }
}
