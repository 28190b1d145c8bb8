public import Base
public import Messages
public import Rules

extension OobDelivery {
    /// The mail of this kind as a made-up user would get it. `config`: the tenant's. MISSING_REQ_TYPE, INVALID_LOCALE,
    /// INVALID_TEMPLATE.
    public func preview(
        _ request: EmailConfigsPreviewTemplateRequest, config: EmailConfig, settings: TenantSettings, limits: Limits
    ) throws(Failure) -> EmailConfigsPreviewTemplateResponse {
        try Values.checkLocale(request.locale, limits: limits)
        let type = request.template?.requestType ?? request.requestType
        guard type != .unspecified, type != .rejectEmail else {
            throw .invalid(.missingReqType, field: "request_type", "must be a kind of mail")
        }
        let page = actionPage(config)
        var templates = config.templates
        if let template = request.template {
            let change = try EmailConfigChange(
                EmailConfig(templates: [template]), UpdateMask(naming: ["templates"]), after: EmailConfigs.defaults,
                limits: limits)
            try change.checkMailLengths(after: config, serverActionURL: page, limits: limits)
            templates = [template]
        }
        func link(_ type: OobRequestType) -> Text {
            ActionLink.make(
                base: page, type, code: "EXAMPLE", tenantID: settings.tenantID, continueURL: .empty)
        }
        let values = MailText.Values(
            appName: request.withoutNames ? .empty : settings.tenant.displayName, email: "ada@example.com",
            newEmail: "ada@new.example", displayName: request.withoutNames ? .empty : "Ada Example", link: link(type),
            notMeLink: OobCodes.isRejectable(type) ? link(.rejectEmail) : .empty)
        let words = MailText(
            type, values, templates: templates, locale: request.template?.locale ?? request.locale,
            byteCountMax: limits.mailBytesMax)
        return EmailConfigsPreviewTemplateResponse(
            subject: words.subject, text: words.text, html: words.html, fromTemplate: words.isFromTemplate)
    }
}
