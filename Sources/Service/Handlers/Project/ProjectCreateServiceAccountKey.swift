import Base
import Crypto
import Identity
import Messages

/// postern.v1.Project/CreateServiceAccountKey
enum ProjectCreateServiceAccountKey: SlowMethod {
    static func handle(
        _ request: ProjectCreateServiceAccountKeyRequest, _ call: Call
    ) async throws -> ProjectCreateServiceAccountKeyResponse {
        let name = request.algorithm.isEmpty ? "RS256" : request.algorithm
        guard let algorithm = SigningAlgorithm(name) else {
            throw Failure.invalid(.invalidAlgorithm, field: "algorithm", "must be RS256 or ES256")
        }
        let made = try await call.project.serviceAccounts.createKey(
            of: request.serviceAccountID, algorithm: algorithm, lifetimeSeconds: request.lifetimeSeconds,
            by: call.caller, validateOnly: request.validateOnly, origin: call.origin, deadline: call.deadline)
        return ProjectCreateServiceAccountKeyResponse(key: made.key, keyFileJSON: made.keyFile)
    }
}
