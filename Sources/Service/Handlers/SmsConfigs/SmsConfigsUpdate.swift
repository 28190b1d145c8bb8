import Identity
import Messages
import Rules

/// postern.v1.SmsConfigs/Update
enum SmsConfigsUpdate: SlowMethod {
    static func handle(_ request: SmsConfigsUpdateRequest, _ call: Call) async throws -> SmsConfigsUpdateResponse {
        let config = try await call.project.smsConfigs.update(
            request.config ?? SmsConfig(), UpdateMask(request.updateMask?.paths), expected: request.expectedRevision,
            tenantID: call.tenantID, isProjectAdmin: call.caller?.has(.projectAdmin) == true,
            validateOnly: request.validateOnly, origin: call.origin)
        return SmsConfigsUpdateResponse(config: config)
    }
}
