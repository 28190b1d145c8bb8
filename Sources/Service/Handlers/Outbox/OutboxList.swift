import Base
import Identity
import Messages
import Store

/// postern.v1.Outbox/List: the newest message first.
enum OutboxList: PageMethod {
    static func handle(
        _ request: OutboxListRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<OutboxListResponse> {
        let page = try call.page(request)
        let found = try transaction.page(
            of: Tables.outbox, prefix: TenantPrefix(call.tenantID),
            from: page.start { TenantTextKey(call.tenantID, $0) }, reversed: true,
            bounds: page.bounds
        ) { row in
            guard let message = try ListedMessage(row.value), message.isShown(in: request.state) else {
                return .skipped
            }
            return .item(message.bytes)
        }
        return .list(
            OutboxListResponse.FieldNumber.messages, found.items,
            OutboxListResponse(nextPageToken: page.token(after: found) { $0.text }))
    }
}

/// A stored message, read only as far as needed to know whether it is in a list, because its contents may be long.
private struct ListedMessage {
    /// An `OutboxMessage`.
    let bytes: UnsafeRawBufferPointer
    private let state: UInt64

    /// Nil for a decoy.
    init?(_ record: UnsafeRawBufferPointer) throws {
        var message: UnsafeRawBufferPointer?
        var record = FieldReader(record)
        while let field = try record.next() {
            switch (field.number, field.value) {
            case (StoredOutboxMessage.FieldNumber.message, .bytes(let bytes)): message = bytes
            case (StoredOutboxMessage.FieldNumber.decoy, .varint(let isDecoy)):
                if isDecoy != 0 { return nil }
            default: break
            }
        }
        guard let message else { return nil }
        bytes = message
        var state: UInt64 = 0
        var fields = FieldReader(message)
        while let field = try fields.next() {
            if field.number == OutboxMessage.FieldNumber.state, case .varint(let value) = field.value { state = value }
        }
        self.state = state
    }

    func isShown(in wanted: OutboxState) -> Bool {
        wanted == .unspecified || Int64(bitPattern: state) == Int64(wanted.rawValue)
    }
}
