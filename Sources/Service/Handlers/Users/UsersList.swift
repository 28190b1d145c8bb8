import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/List: copies the stored users as they lie in the database.
enum UsersList: PageMethod {
    static func handle(
        _ request: UsersListRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersListResponse> {
        let page = try call.page(request)
        let found = try transaction.page(
            of: Tables.users, prefix: TenantPrefix(call.tenantID), from: page.start { UserKey(call.tenantID, $0) },
            bounds: page.bounds
        ) { row in .item(Account.encodedUser(in: row.value)) }
        return .list(
            UsersListResponse.FieldNumber.users, found.items,
            UsersListResponse(nextPageToken: page.token(after: found) { $0.uid }))
    }
}
