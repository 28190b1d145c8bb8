import Base
import Identity
import Messages
import Store

/// postern.v1.Tenants/ListDenials: the newest first.
enum TenantsListDenials: PageMethod {
    static func handle(
        _ request: TenantsListDenialsRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TenantsListDenialsResponse> {
        let page = try call.page(request)
        let before = try page.last.map { token in
            guard let sequence = Int64(token.string) else { throw Page.invalidToken }
            return sequence
        }
        let from = Timestamp(microseconds: request.fromMicros)
        let to = Timestamp(microseconds: request.toMicros == 0 ? .max : request.toMicros)
        let found = try transaction.denials(
            tenantID: call.tenantID, before: before, from: from, to: to, bounds: page.bounds)
        var rest = TenantsListDenialsResponse(nextPageToken: page.token(after: found) { Text("\($0.sequence)") })
        if page.last == nil {
            rest.counts = try transaction.denialCounts(
                tenantID: call.tenantID, from: from, to: to, limit: call.limits.pageSizeMax)
        }
        return .list(TenantsListDenialsResponse.FieldNumber.denials, found.items, rest)
    }
}
