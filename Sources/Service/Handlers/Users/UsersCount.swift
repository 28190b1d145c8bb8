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
        // A sum that is unknown counts changes only.
        let count = try max(0, transaction.usage(ofTenant: call.tenantID).countedRowCount)
        return .message(UsersCountResponse(count: count))
    }
}
