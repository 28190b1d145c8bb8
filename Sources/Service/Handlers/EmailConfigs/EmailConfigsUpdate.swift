import Identity
import Messages
import Rules

/// postern.v1.EmailConfigs/Update
enum EmailConfigsUpdate: SlowMethod {
    static func isLong(_ request: EmailConfigsUpdateRequest) -> Bool { true }

    static func handle(_ request: EmailConfigsUpdateRequest, _ call: Call) async throws -> EmailConfigsUpdateResponse {
        let config = try await call.project.emailConfigs.update(
            request.config ?? EmailConfig(), UpdateMask(request.updateMask?.paths), expected: request.expectedRevision,
            tenantID: call.tenantID, isProjectAdmin: call.caller?.has(.projectAdmin) == true,
            validateOnly: request.validateOnly, origin: call.origin)
        return EmailConfigsUpdateResponse(config: config)
    }
}
