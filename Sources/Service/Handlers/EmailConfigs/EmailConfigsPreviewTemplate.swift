import Identity
import Messages
import Store

/// postern.v1.EmailConfigs/PreviewTemplate: to check a long template and make a mail of it takes as long as a page of a
/// list.
enum EmailConfigsPreviewTemplate: PageMethod {
    static func handle(
        _ request: EmailConfigsPreviewTemplateRequest, _ call: borrowing ReadCall,
        _ transaction: borrowing ReadTransaction
    ) throws -> Reply<EmailConfigsPreviewTemplateResponse> {
        let config = try transaction.emailConfig(tenantID: call.tenantID)
        return .message(
            try call.oobDelivery.preview(request, config: config, settings: call.settings, limits: call.limits))
    }
}
