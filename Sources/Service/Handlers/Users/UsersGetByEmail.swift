import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/GetByEmail
enum UsersGetByEmail: FastMethod {
    static func handle(
        _ request: UsersGetByEmailRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersGetByEmailResponse> {
        let email = try Values.email(request.email, form: .toFind, limits: call.limits)
        guard let uid = try transaction.uid(ofEmail: email, tenantID: call.tenantID),
            let bytes = try transaction.encodedUser(UserKey(call.tenantID, uid))
        else { throw Failure.userNotFound }
        return .field(UsersGetByEmailResponse.FieldNumber.user, bytes)
    }
}
