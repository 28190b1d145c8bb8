public import Base
public import Messages
public import Store

extension WriteTransaction {
    /// Appends to the tenant's event log, in the same transaction as the change that the event records.
    ///
    /// `detail` says what else there is to know, never a secret. Project-wide changes go to the default pool's log.
    public func appendEvent(
        _ kind: EventKind, tenantID: Text, uid: Text = .empty, origin: Origin, detail: Text = .empty,
        settings: SettingsChange? = nil, now: Timestamp
    ) throws {
        let event = EventRecord(
            timeMicros: now.microseconds, kind: kind, tenantID: tenantID, uid: uid, actor: origin.actor,
            requestID: origin.requestID, detail: detail, settingsChange: settings)
        try appendEvent(tenant: tenantID, event.encoded())
        if !uid.isEmpty { announce(.user(UserKey(tenantID, uid))) }
    }
}
