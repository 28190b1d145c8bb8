import Identity
import Messages
import Store

/// postern.v1.EmailConfigs/PreviewTemplate
enum EmailConfigsPreviewTemplate: FastMethod {
    static func handle(
        _ request: EmailConfigsPreviewTemplateRequest, _ call: borrowing ReadCall,
        _ transaction: borrowing ReadTransaction
    ) throws -> Reply<EmailConfigsPreviewTemplateResponse> {
        let config = try transaction.emailConfig(tenantID: call.tenantID)
        return .message(
            try call.oobDelivery.preview(request, config: config, settings: call.settings, limits: call.limits))
    }
}
