import Base
import Identity
import Messages
import Store

/// postern.v1.Users/List
enum UsersList: FastMethod {
    static func handle(
        _ request: UsersListRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersListResponse> {
        let page = try call.page(request)
        var response = UsersListResponse()
        var byteCount = 0
        var last: Text?
        let start = page.last.map { ScanStart.after(UserKey(call.tenantID, $0).bytes) } ?? .first
        try transaction.scan(Tables.users, prefix: TenantPrefix(call.tenantID), from: start) { _, value in
            if response.users.count == page.size || byteCount >= call.limits.pageBytesMax {
                response.nextPageToken = page.token(after: last)
                return false
            }
            let user = try User(decoding: Account.encodedUser(in: value))
            response.users.append(user)
            byteCount += value.count
            last = user.uid
            return true
        }
        return .message(response)
    }
}
