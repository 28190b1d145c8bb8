import Base
import Identity
import Messages
import Store

/// postern.v1.Users/List: copies the stored users as they lie in the database.
enum UsersList: PageMethod {
    static func handle(
        _ request: UsersListRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersListResponse> {
        let page = try call.page(request)
        let prefix = TenantPrefix(call.tenantID)
        let found = try transaction.page(
            of: Tables.users, prefix: prefix, from: page.start { UserKey(call.tenantID, $0) }, bounds: page.bounds
        ) { _, value in .item(Account.encodedUser(in: value)) }
        return .list(1, found.items, UsersListResponse(nextPageToken: page.token(after: found, behind: prefix)))
    }
}
