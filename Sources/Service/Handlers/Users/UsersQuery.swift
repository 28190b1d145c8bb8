import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/Query: copies the stored users as they lie in the database.
enum UsersQuery: PageMethod {
    static func handle(
        _ request: UsersQueryRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersQueryResponse> {
        let page = try call.page(request)
        let query = try UserQuery(request, limits: call.limits)
        let found = try transaction.users(query, tenantID: call.tenantID, after: page.last, bounds: page.bounds)
        let rest = UsersQueryResponse(
            nextPageToken: page.token(behind: found.last), scanned: Int32(clamping: found.rowReadCount),
            isComplete: found.last == nil)
        return .list(UsersQueryResponse.FieldNumber.users, found.users, rest)
    }
}
