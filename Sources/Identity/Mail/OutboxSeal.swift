import Base
import Crypto
import Messages

/// Seals the contents of outbox messages: their link or code is as good as a password. Any thread.
struct OutboxSeal: Sendable {
    let sealing: SealingKey
    let random: RandomSource

    func seal(_ contents: OutboxContents, tenantID: Text, messageID: Text) throws -> [UInt8] {
        try sealing.seal(
            Secret(contents.compacted().encoded()), context: Self.context(tenantID, messageID), random: random)
    }

    /// OUTBOX_MESSAGE_UNREADABLE when it was sealed under another master key.
    func open(_ stored: StoredOutboxMessage, tenantID: Text) throws -> OutboxContents {
        let context = Self.context(tenantID, stored.message?.messageID ?? .empty)
        guard let opened = try? sealing.open(stored.sealedContents, context: context) else {
            throw Failure(
                .outboxMessageUnreadable, "The message was written under another master key.")
        }
        return try opened.withBytes { try OutboxContents(stored: $0).expanded() }
    }

    /// A new message's id: 16 hexadecimal digits of time, so that ids sort by it, and ten random characters, which make
    /// it unique.
    func messageID(at time: Timestamp) -> Text {
        let digits = String(UInt64(bitPattern: time.microseconds), radix: 16)
        let hex = String(repeating: "0", count: max(0, 16 - digits.count)) + digits
        return Text(hex + random.alphanumeric(10).string)
    }

    private static func context(_ tenantID: Text, _ messageID: Text) -> [UInt8] {
        [UInt8]("outbox".utf8) + [0] + tenantID.bytes + [0] + messageID.bytes
    }
}
