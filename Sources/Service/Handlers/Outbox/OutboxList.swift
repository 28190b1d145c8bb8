import Base
import Identity
import Messages
import Store

/// postern.v1.Outbox/List
enum OutboxList: FastMethod {
    static func handle(
        _ request: OutboxListRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<OutboxListResponse> {
        let page = try Page(size: request.pageSize, token: request.pageToken, limits: call.limits)
        let messages = try transaction.outboxMessages(
            tenantID: call.tenantID, before: page.last, state: request.state, limit: page.size + 1)
        var response = OutboxListResponse(messages: Array(messages.prefix(page.size)))
        if messages.count > page.size { response.nextPageToken = Page.token(after: response.messages.last?.messageID) }
        return .message(response)
    }
}
