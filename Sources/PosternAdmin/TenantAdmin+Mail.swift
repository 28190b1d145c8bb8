public import Base
public import Messages
public import PosternClient

// MARK: - How mail goes out

extension TenantAdmin {
    /// Returns the tenant's mail settings, without their secrets.
    public func emailConfig(options: CallOptions = .init()) async throws(Failure) -> EmailConfig {
        try await required(emailConfigs.get(EmailConfigsGetRequest(tenantID: tenantID), options: options).config)
    }

    /// Changes the tenant's mail settings. Mail that waits is delivered by the new settings, too.
    ///
    /// Throws INVALID_SMTP_SERVER, INVALID_WEBHOOK, INVALID_EMAIL, INVALID_ACTION_URL, INVALID_TEMPLATE,
    /// SENDER_REQUIRED, and INVALID_UPDATE_MASK for an empty change.
    @discardableResult
    public func updateEmailConfig(
        _ change: EmailConfigChange, options: CallOptions = .init()
    ) async throws(Failure) -> EmailConfig {
        let fields = change.fields
        let request = EmailConfigsUpdateRequest(tenantID: tenantID, config: fields.message, updateMask: fields.mask)
        return try await required(sendOnce(emailConfigs.update, request, options).config)
    }

    /// Sends one test mail with the tenant's settings, and returns the result. A tenant may send ten test mails an
    /// hour.
    ///
    /// Throws INVALID_EMAIL, TOO_MANY_ATTEMPTS_TRY_LATER.
    public func testEmailConfig(
        to recipient: Text, options: CallOptions = .init()
    ) async throws(Failure) -> EmailConfigsTestResponse {
        try await emailConfigs.test(EmailConfigsTestRequest(tenantID: tenantID, to: recipient), options: options)
    }

    /// Returns the mail of this kind that a made-up user would get, and sends nothing. `template`: a template that is
    /// not stored yet; its own kind and language are used. `withoutNames`: neither user nor tenant has a display name.
    ///
    /// Throws MISSING_REQ_TYPE, INVALID_LOCALE, INVALID_TEMPLATE.
    public func previewMail(
        _ type: OobRequestType, locale: Text = "", template: EmailTemplate? = nil, withoutNames: Bool = false,
        options: CallOptions = .init()
    ) async throws(Failure) -> EmailConfigsPreviewTemplateResponse {
        let request = EmailConfigsPreviewTemplateRequest(
            tenantID: tenantID, requestType: type, locale: locale, template: template, withoutNames: withoutNames)
        return try await emailConfigs.previewTemplate(request, options: options)
    }

    private var emailConfigs: EmailConfigsClient { EmailConfigsClient(channel: channel) }
}

// MARK: - How SMS go out

extension TenantAdmin {
    /// Returns the tenant's SMS settings, without the webhook's secret.
    public func smsConfig(options: CallOptions = .init()) async throws(Failure) -> SmsConfig {
        try await required(smsConfigs.get(SmsConfigsGetRequest(tenantID: tenantID), options: options).config)
    }

    /// Changes the tenant's SMS settings. An SMS that waits is delivered by the new settings, too.
    ///
    /// Throws INVALID_DELIVERY, INVALID_WEBHOOK, INVALID_TEMPLATE, and INVALID_UPDATE_MASK for an empty change.
    @discardableResult
    public func updateSmsConfig(
        _ change: SMSConfigChange, options: CallOptions = .init()
    ) async throws(Failure) -> SmsConfig {
        let fields = change.fields
        let request = SmsConfigsUpdateRequest(tenantID: tenantID, config: fields.message, updateMask: fields.mask)
        return try await required(sendOnce(smsConfigs.update, request, options).config)
    }

    private var smsConfigs: SmsConfigsClient { SmsConfigsClient(channel: channel) }
}

// MARK: - Mail and SMS on their way

extension TenantAdmin {
    /// Lists the messages of the outbox, the newest first, without their contents. `state` nil: in any state.
    public func listOutbox(
        state: OutboxState? = nil, pageSize: Int32 = 0, options: CallOptions = .init()
    ) -> Listing<OutboxMessage> {
        Listing { [outbox, tenantID] token throws(Failure) in
            let page = try await outbox.list(
                OutboxListRequest(
                    tenantID: tenantID, state: state ?? .unspecified, pageSize: pageSize, pageToken: token),
                options: options)
            return (page.messages, page.nextPageToken)
        }
    }

    /// Returns a message with its contents. Its link is as good as a password, so the event log records who read it.
    ///
    /// Throws OUTBOX_MESSAGE_NOT_FOUND.
    public func getOutboxMessage(
        _ messageID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> (message: OutboxMessage, contents: OutboxContents) {
        let request = OutboxGetRequest(tenantID: tenantID, messageID: messageID)
        let answer = try await sendOnce(outbox.get, request, options)
        return (try required(answer.message), try required(answer.contents))
    }

    /// Delivers a waiting, dead or held message at once.
    ///
    /// Throws OUTBOX_MESSAGE_NOT_FOUND, OUTBOX_MESSAGE_NOT_DELIVERABLE.
    @discardableResult
    public func retryOutboxMessage(
        _ messageID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> OutboxMessage {
        let request = OutboxRetryRequest(tenantID: tenantID, messageID: messageID)
        return try await required(sendOnce(outbox.retry, request, options).message)
    }

    /// Deletes a message. Throws OUTBOX_MESSAGE_NOT_FOUND.
    public func deleteOutboxMessage(_ messageID: Text, options: CallOptions = .init()) async throws(Failure) {
        let request = OutboxDeleteRequest(tenantID: tenantID, messageID: messageID)
        _ = try await sendOnce(outbox.delete, request, options)
    }

    private var outbox: OutboxClient { OutboxClient(channel: channel) }
}
