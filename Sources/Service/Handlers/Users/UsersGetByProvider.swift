import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/GetByProvider
enum UsersGetByProvider: FastMethod {
    static func handle(
        _ request: UsersGetByProviderRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersGetByProviderResponse> {
        let name = UserName(name: .identity(request.identity ?? ProviderIdentity()))
        try name.check(limits: call.limits)
        guard let bytes = try transaction.encodedUser(named: name, tenantID: call.tenantID) else {
            throw Failure.userNotFound
        }
        return .field(UsersGetByProviderResponse.FieldNumber.user, bytes)
    }
}
