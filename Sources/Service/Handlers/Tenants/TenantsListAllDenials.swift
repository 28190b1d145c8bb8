import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Tenants/ListAllDenials
enum TenantsListAllDenials: PageMethod {
    static func handle(
        _ request: TenantsListAllDenialsRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<TenantsListAllDenialsResponse> {
        let page = try call.page(request)
        let query = try DenialQuery(
            email: request.email, phoneNumber: request.phoneNumber, decisionID: request.decisionID,
            fromMicros: request.fromMicros, toMicros: request.toMicros, identifiers: call.denialIdentifiers,
            limits: call.limits)
        let start = try page.last.map { token in
            guard let start = DenialPlace(token) else { throw Page.invalidToken }
            return start
        }
        let found = try transaction.denialsOfAllTenants(query, after: start, bounds: page.bounds)
        return .message(
            TenantsListAllDenialsResponse(
                denials: found.denials, nextPageToken: page.token(behind: found.last.map(\.text))))
    }
}
