import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Accounts/CheckOobCode
enum AccountsCheckOobCode: FastMethod {
    static func handle(
        _ request: AccountsCheckOobCodeRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<AccountsCheckOobCodeResponse> {
        guard !request.oobCode.isEmpty else { throw Failure.missingOobCode }
        let code = try transaction.oobCode(request.oobCode, tenantID: call.settings.tenantID, now: call.now)
        // A user who follows a sign-in link has to enter its email, so the answer does not contain it.
        let email = code.requestType == .emailSignin ? .empty : code.email
        let account = try transaction.joinedAccount(code, settings: call.settings, now: call.now)
        return .message(
            AccountsCheckOobCodeResponse(
                requestType: code.requestType, email: email, newEmail: code.newEmail, account: account))
    }
}
