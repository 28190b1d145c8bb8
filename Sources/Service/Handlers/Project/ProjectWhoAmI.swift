import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Project/WhoAmI
enum ProjectWhoAmI: FastMethod {
    static func handle(
        _ request: ProjectWhoAmIRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<ProjectWhoAmIResponse> {
        guard let caller = call.caller else { throw Failure.callerUnauthenticated }
        return .message(
            ProjectWhoAmIResponse(
                caller: caller.id, role: caller.role,
                scope: Scope(tenants: caller.tenantID.map { .tenantID($0) } ?? .all(true)),
                expiresAtMicros: caller.expiresAt?.microseconds ?? 0, trustedEndUserIP: caller.trustsEndUserIP,
                exportPasswordHashes: caller.exportsPasswordHashes, projectID: call.configuration.projectID))
    }
}
