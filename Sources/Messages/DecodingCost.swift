import CMessages

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

extension Message {
    /// The memory that the message of these bytes takes once it is decoded, or a little more: for a call that keeps its
    /// request while it waits. A text of three bytes, for example, has a block of 48 bytes of its own.
    ///
    /// The bytes were decoded before. The sum has their content, and these parts:
    ///
    /// | for | bytes | because |
    /// |---|---|---|
    /// | each field, and each element | 64 | its place has 8, and its block, in steps of 16, 40 without the content |
    /// | an inner message | 4 times its C struct | the Swift struct is shorter, but each secret has two blocks |
    /// | the message | 8 times its Swift struct | a flat message has a place of 8 for each text |
    public static func memoryByteCount(decoding bytes: UnsafeRawBufferPointer) -> Int {
        guard let type = Self.self as? any ConvertibleToC.Type else {
            // Proof: all messages are generated, and so are their conformances.
            preconditionFailure("\(Self.self) is not generated")
        }
        return type.memoryByteCount(of: bytes)
    }
}

extension ConvertibleToC {
    fileprivate static func memoryByteCount(of bytes: UnsafeRawBufferPointer) -> Int {
        let least = bytes.count + 8 * MemoryLayout<Self>.stride
        if isFlat { return least }
        let (fields, innerByteCount) = PreScan.counted(bytes, of: schema)
        return least + 64 * fields + 4 * innerByteCount
    }
}
