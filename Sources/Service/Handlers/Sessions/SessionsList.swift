import Base
import Identity
import Messages
import Rules
import Store
import Tokens

/// postern.v1.Sessions/List
enum SessionsList: FastMethod {
    static func handle(
        _ request: SessionsListRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<SessionsListResponse> {
        let verified = try call.verifiedUser(idToken: request.idToken, in: transaction)
        let user = verified.account.user
        let sessions = try transaction.liveSessions(
            of: UserKey(user.tenantID, user.uid), settings: call.settings, current: verified.token.sessionID,
            now: call.now)
        return .message(SessionsListResponse(sessions: sessions))
    }
}
