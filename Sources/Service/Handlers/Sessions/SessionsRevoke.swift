import Base
import Identity
import Messages
import Rules
import Store
import Tokens

/// postern.v1.Sessions/Revoke
enum SessionsRevoke: SlowMethod {
    static func purpose(of request: SessionsRevokeRequest, _ rule: MethodDescriptor) -> WritePurpose { .removal }

    static func handle(_ request: SessionsRevokeRequest, _ call: Call) async throws -> SessionsRevokeResponse {
        let verified = try call.verifiedUser(idToken: request.idToken)
        let owner = call.userSession(verified.account.user.uid)
        switch request.target {
        case .sessionID(let id) where !id.isEmpty:
            let isEnded = try await owner.end(session: try call.sessionID(id), .signedOut, origin: call.origin)
            return SessionsRevokeResponse(revokedCount: isEnded ? 1 : 0)
        case .allOthers(true):
            let count = try await owner.endSessions(
                except: verified.token.sessionID, .signedOut, origin: call.origin)
            return SessionsRevokeResponse(revokedCount: Int32(clamping: count))
        case .sessionID, .allOthers, nil:
            throw Failure.invalid(
                .missingSessionID, field: "session_id", "is required, unless all_others is true")
        }
    }
}

extension Call {
    /// A text that is not an id fails like the id of an unknown session.
    func sessionID(_ text: Text) throws -> [UInt8] {
        guard let id = Hex.decode(text.bytes), id.count == 16 else { throw Failure.sessionNotFound }
        return id
    }
}
