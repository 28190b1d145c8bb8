import Identity
import Messages
import Store

/// postern.v1.EmailConfigs/Get
enum EmailConfigsGet: FastMethod {
    static func handle(
        _ request: EmailConfigsGetRequest, _ call: borrowing Call, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<EmailConfigsGetResponse> {
        .message(EmailConfigsGetResponse(config: try call.project.emailConfigs.get(tenantID: call.tenantID)))
    }
}
