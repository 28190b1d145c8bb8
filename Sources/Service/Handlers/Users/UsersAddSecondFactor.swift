import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/AddSecondFactor
enum UsersAddSecondFactor: SlowMethod {
    static func handle(
        _ request: UsersAddSecondFactorRequest, _ call: Call
    ) async throws -> UsersAddSecondFactorResponse {
        let number = try PhoneNumber.read(request.phoneNumber)
        try SecondFactorRules.checkDisplayName(request.displayName, limits: call.limits)
        return try await call.project.secondFactorEnrollments.add(
            phone: number, displayName: request.displayName, to: UserKey(call.tenantID, request.uid),
            origin: call.origin, validateOnly: request.validateOnly)
    }
}
