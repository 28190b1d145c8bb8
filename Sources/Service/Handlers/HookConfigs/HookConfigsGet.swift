import Identity
import Messages
import Store

/// postern.v1.HookConfigs/Get
enum HookConfigsGet: FastMethod {
    static func handle(
        _ request: HookConfigsGetRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<HookConfigsGetResponse> {
        .message(HookConfigsGetResponse(config: try transaction.hookConfig(tenantID: call.tenantID)))
    }
}
