/// What the limits of a decoder (`MessageLimits`) count in a message.
package struct DecodingCost: Sendable {
    package var byteCount: Int
    /// The fields that are set, those of inner messages included.
    package var fieldCount: Int
    /// The memory of the decoded message.
    package var memoryByteCount: Int

    package init(byteCount: Int = 0, fieldCount: Int = 0, memoryByteCount: Int = 0) {
        self.byteCount = byteCount
        self.fieldCount = fieldCount
        self.memoryByteCount = memoryByteCount
    }
}

extension Message {
    /// Measured by decoding the message: for a client that puts as much into a message as the server takes.
    package var decodingCost: DecodingCost {
        // Proof: all messages are generated, and so are their conformances.
        guard let message = self as? any ConvertibleToC else { preconditionFailure("\(Self.self) is not generated") }
        return measureDecoding(of: message)
    }
}
