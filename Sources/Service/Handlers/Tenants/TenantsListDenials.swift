import Base
import Identity
import Messages
import Rules
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
        let query = try DenialQuery(
            email: request.email, phoneNumber: request.phoneNumber, decisionID: request.decisionID,
            fromMicros: request.fromMicros, toMicros: request.toMicros, identifiers: call.denialIdentifiers,
            limits: call.limits)
        let found = try transaction.denials(
            query, tenantID: call.tenantID, secret: call.settings.secret, before: before, bounds: page.bounds)
        var rest = TenantsListDenialsResponse(nextPageToken: page.token(after: found) { Text("\($0.sequence)") })
        if page.last == nil {
            let hours = try transaction.denialCounts(
                tenantID: call.tenantID, from: query.from, to: query.to, limit: call.limits.pageSizeMax)
            rest.counts = hours.counts
            rest.countsCutBeforeMicros = hours.cutBefore?.microseconds ?? 0
        }
        return .list(TenantsListDenialsResponse.FieldNumber.denials, found.items, rest)
    }
}
