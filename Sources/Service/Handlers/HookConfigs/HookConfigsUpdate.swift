import Identity
import Messages
import Rules

/// postern.v1.HookConfigs/Update
enum HookConfigsUpdate: SlowMethod {
    static func handle(_ request: HookConfigsUpdateRequest, _ call: Call) async throws -> HookConfigsUpdateResponse {
        let config = try await call.project.hookConfigs.update(
            request.config ?? HookConfig(), UpdateMask(request.updateMask?.paths), expected: request.expectedRevision,
            tenantID: call.tenantID, isProjectAdmin: call.caller?.has(.projectAdmin) == true,
            validateOnly: request.validateOnly, origin: call.origin)
        return HookConfigsUpdateResponse(config: config)
    }
}
