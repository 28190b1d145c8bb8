import Base
import Identity
import Messages
import Store

/// postern.v1.Outbox/List
enum OutboxList: FastMethod {
    static func handle(
        _ request: OutboxListRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<OutboxListResponse> {
        let page = try call.page(request)
        let (messages, next) = try transaction.outboxMessages(
            tenantID: call.tenantID, before: page.last, state: request.state, limit: page.size,
            readMax: call.limits.outboxReadMax)
        return .message(OutboxListResponse(messages: messages, nextPageToken: page.token(after: next)))
    }
}
