public import Base
public import Messages
public import PosternClient

// MARK: - How mail goes out

extension TenantAdmin {
    /// Without its secrets.
    public func emailConfig(options: CallOptions = .init()) async throws(Failure) -> EmailConfig {
        try await part(emailConfigs.get(EmailConfigsGetRequest(tenantID: tenantID), options: options).config)
    }

    @discardableResult
    public func updateEmailConfig(
        _ change: EmailConfigChange, options: CallOptions = .init()
    ) async throws(Failure) -> EmailConfig {
        let fields = change.fields
        let request = EmailConfigsUpdateRequest(tenantID: tenantID, config: fields.message, updateMask: fields.mask)
        return try await part(keyed(emailConfigs.update, request, options).config)
    }

    private var emailConfigs: EmailConfigsClient { EmailConfigsClient(channel: channel) }
}

// MARK: - Mail on its way

extension TenantAdmin {
    /// Newest first, without contents. `state` nil: any.
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

    /// With its link, which is as good as a password: the event log says who read it. OUTBOX_MESSAGE_NOT_FOUND.
    public func getOutboxMessage(
        _ messageID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> (message: OutboxMessage, contents: OutboxContents) {
        let request = OutboxGetRequest(tenantID: tenantID, messageID: messageID)
        let answer = try await keyed(outbox.get, request, options)
        return (try part(answer.message), try part(answer.contents))
    }

    /// Delivers a dead or waiting message at once. OUTBOX_MESSAGE_NOT_DELIVERABLE.
    @discardableResult
    public func retryOutboxMessage(
        _ messageID: Text, options: CallOptions = .init()
    ) async throws(Failure) -> OutboxMessage {
        let request = OutboxRetryRequest(tenantID: tenantID, messageID: messageID)
        return try await part(keyed(outbox.retry, request, options).message)
    }

    public func deleteOutboxMessage(_ messageID: Text, options: CallOptions = .init()) async throws(Failure) {
        let request = OutboxDeleteRequest(tenantID: tenantID, messageID: messageID)
        _ = try await keyed(outbox.delete, request, options)
    }

    private var outbox: OutboxClient { OutboxClient(channel: channel) }
}
