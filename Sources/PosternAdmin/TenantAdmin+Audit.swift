public import Base
public import Messages
public import PosternClient

// MARK: - The event log

extension TenantAdmin {
    var audit: AuditClient { AuditClient(channel: channel) }

    /// Lists the events that fulfil the conditions, the newest first unless `oldestFirst`.
    ///
    /// Throws PROJECT_EVENTS_NOT_ALLOWED for the default pool, whose log needs a project-admin.
    public func listEvents(
        _ filter: EventFilter = EventFilter(), oldestFirst: Bool = false, includeProof: Bool = false,
        pageSize: Int32 = 0, options: CallOptions = .init()
    ) -> Listing<AuditEvent> {
        Listing { [audit, tenantID] token throws(Failure) in
            let page = try await audit.listEvents(
                AuditListEventsRequest(
                    tenantID: tenantID, pageSize: pageSize, pageToken: token, filter: filter, oldestFirst: oldestFirst,
                    includeProof: includeProof), options: options)
            return (page.events, page.nextPageToken)
        }
    }

    /// Follows the events that fulfil the conditions as they are committed, without a gap. `sequence` is the last event
    /// to leave out: 0 begins with the oldest event that is kept, nil begins now.
    public func watchEvents(
        _ filter: EventFilter = EventFilter(), after sequence: Int64? = nil, options: CallOptions = .init()
    ) -> EventFeed {
        EventFeed(admin: self, filter: filter, after: sequence, options: options)
    }

    /// Lists the changes of the tenant's settings, the newest first: the author, the time, and the old and new values
    /// of each (`AuditEvent.settingsChange`).
    public func listSettingsChanges(pageSize: Int32 = 0, options: CallOptions = .init()) -> Listing<AuditEvent> {
        Listing { [audit, tenantID] token throws(Failure) in
            let page = try await audit.listSettingsChanges(
                AuditListSettingsChangesRequest(tenantID: tenantID, pageSize: pageSize, pageToken: token),
                options: options)
            return (page.events, page.nextPageToken)
        }
    }

    /// Returns the state of the log, signed by the server. With it, anybody who has the events can verify them.
    public func signCheckpoint(
        options: CallOptions = .init()
    ) async throws(Failure) -> (checkpoint: AuditCheckpoint, signed: SignedAuditCheckpoint) {
        let request = AuditSignCheckpointRequest(tenantID: tenantID)
        let answer = try await audit.signCheckpoint(request, options: options)
        return (try required(answer.checkpoint), try required(answer.signed))
    }
}
