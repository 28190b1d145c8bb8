import Base
import Identity
import Messages
import Store

/// postern.v1.Accounts/CreateAuthUri
enum AccountsCreateAuthUri: FastMethod {
    static func handle(
        _ request: AccountsCreateAuthUriRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<AccountsCreateAuthUriResponse> {
        guard !request.identifier.isEmpty else {
            throw Failure.invalid("MISSING_IDENTIFIER", field: "identifier", "is required")
        }
        guard let email = Email(request.identifier, form: .toFind, limits: call.limits) else {
            throw Failure.invalid("INVALID_IDENTIFIER", field: "identifier", "is no email address")
        }
        guard !call.settings.hasEmailPrivacy,
            let account = try call.project.account(email: email, tenantID: call.tenantID)
        else { return .message(AccountsCreateAuthUriResponse()) }
        return .message(
            AccountsCreateAuthUriResponse(registered: true, signInMethods: account.signInMethods))
    }
}
