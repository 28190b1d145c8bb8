import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/Get: copies the stored user as it lies in the database.
enum UsersGet: FastMethod {
    static func handle(
        _ request: UsersGetRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersGetResponse> {
        let key = UserKey(call.tenantID, request.uid)
        guard !request.includeLastRefresh else {
            guard var user = try transaction.user(key) else { throw Failure.userNotFound }
            user.lastRefreshAtMicros = try transaction.lastRefresh(tenantID: key.tenant, uid: key.uid)
            return .message(UsersGetResponse(user: user))
        }
        guard let bytes = try transaction.encodedUser(key) else { throw Failure.userNotFound }
        return .field(UsersGetResponse.FieldNumber.user, bytes)
    }
}
