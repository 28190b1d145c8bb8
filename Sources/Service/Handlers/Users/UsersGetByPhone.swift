import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/GetByPhone
enum UsersGetByPhone: FastMethod {
    static func handle(
        _ request: UsersGetByPhoneRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersGetByPhoneResponse> {
        let name = UserName(name: .phoneNumber(request.phoneNumber))
        try name.check(limits: call.limits)
        guard let bytes = try transaction.encodedUser(named: name, tenantID: call.tenantID) else {
            throw Failure.userNotFound
        }
        return .field(UsersGetByPhoneResponse.FieldNumber.user, bytes)
    }
}
