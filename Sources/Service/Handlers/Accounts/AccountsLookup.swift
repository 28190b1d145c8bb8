import Identity
import Messages
import Rules
import Store

/// postern.v1.Accounts/Lookup
enum AccountsLookup: FastMethod {
    static func handle(
        _ request: AccountsLookupRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<AccountsLookupResponse> {
        var user = try call.enrollingUser(idToken: request.idToken, in: transaction).account.user
        user.lastRefreshAtMicros = try transaction.lastRefresh(tenantID: user.tenantID, uid: user.uid)
        return .message(AccountsLookupResponse(user: user))
    }
}
