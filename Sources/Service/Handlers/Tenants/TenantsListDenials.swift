import Base
import Identity
import Messages
import Store

/// postern.v1.Tenants/ListDenials
enum TenantsListDenials: FastMethod {
    static func handle(
        _ request: TenantsListDenialsRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TenantsListDenialsResponse> {
        let page = try call.page(request)
        let before = try page.last.map { token in
            guard let sequence = Int64(token.string) else { throw Page.invalidToken }
            return sequence
        }
        let from = Timestamp(microseconds: request.fromMicros)
        let to = Timestamp(microseconds: request.toMicros == 0 ? .max : request.toMicros)
        var denials = try transaction.denials(
            tenantID: call.tenantID, before: before, from: from, to: to, limit: page.size + 1)
        var response = TenantsListDenialsResponse()
        if denials.count > page.size {
            denials.removeLast()
            response.nextPageToken = page.token(after: denials.last.map { Text("\($0.sequence)") })
        }
        response.denials = denials
        if page.last == nil {
            response.counts = try transaction.denialCounts(
                tenantID: call.tenantID, from: from, to: to, limit: call.limits.pageSizeMax)
        }
        return .message(response)
    }
}
