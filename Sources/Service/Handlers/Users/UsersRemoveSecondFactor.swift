import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/RemoveSecondFactor
enum UsersRemoveSecondFactor: SlowMethod {
    static func handle(
        _ request: UsersRemoveSecondFactorRequest, _ call: Call
    ) async throws -> UsersRemoveSecondFactorResponse {
        guard request.all != !request.factorID.isEmpty else { throw Failure.missingFactorID }
        let user = try await call.project.secondFactorEnrollments.remove(
            request.all ? nil : request.factorID, of: UserKey(call.tenantID, request.uid), origin: call.origin,
            validateOnly: request.validateOnly)
        return UsersRemoveSecondFactorResponse(user: user)
    }
}
