import Base
import Identity
import Messages
import Store

/// postern.v1.Users/Count
enum UsersCount: FastMethod {
    static func handle(
        _ request: UsersCountRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersCountResponse> {
        guard try transaction.hasUserIndexes() else { throw Failure.upgradePending }
        return .message(UsersCountResponse(count: try transaction.usage(ofTenant: call.tenantID).countedRowCount))
    }
}
