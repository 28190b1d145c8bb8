import Identity
import Messages
import Store

/// postern.v1.EmailConfigs/Get: with many templates, the answer is as long as a page of a list.
enum EmailConfigsGet: PageMethod {
    static func handle(
        _ request: EmailConfigsGetRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<EmailConfigsGetResponse> {
        .message(EmailConfigsGetResponse(config: try transaction.emailConfig(tenantID: call.tenantID)))
    }
}
