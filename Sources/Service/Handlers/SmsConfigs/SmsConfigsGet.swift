import Identity
import Messages
import Store

/// postern.v1.SmsConfigs/Get
enum SmsConfigsGet: FastMethod {
    static func handle(
        _ request: SmsConfigsGetRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<SmsConfigsGetResponse> {
        .message(SmsConfigsGetResponse(config: try transaction.smsConfig(tenantID: call.tenantID)))
    }
}
