import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/ListSessions
enum UsersListSessions: FastMethod {
    static func handle(
        _ request: UsersListSessionsRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersListSessionsResponse> {
        let key = UserKey(call.tenantID, request.uid)
        guard try transaction.encodedUser(key) != nil else { throw Failure.userNotFound }
        return .message(
            UsersListSessionsResponse(
                sessions: try transaction.liveSessions(of: key, settings: call.settings, now: call.now)))
    }
}
