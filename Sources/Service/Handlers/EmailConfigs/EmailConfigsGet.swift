import Identity
import Messages
import Store

/// postern.v1.EmailConfigs/Get
enum EmailConfigsGet: FastMethod {
    static func handle(
        _ request: EmailConfigsGetRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<EmailConfigsGetResponse> {
        .message(EmailConfigsGetResponse(config: try transaction.emailConfig(tenantID: call.tenantID)))
    }
}
