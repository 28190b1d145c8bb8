import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Audit/ListSettingsChanges
///
/// The default pool's admins may read its settings changes, unlike the rest of its log, because they read the settings,
/// too. They learn who made a change only for the keys that they may list, and not for the project's keys.
enum AuditListSettingsChanges: PageMethod {
    static func handle(
        _ request: AuditListSettingsChangesRequest, _ call: borrowing ReadCall,
        _ transaction: borrowing ReadTransaction
    ) throws -> Reply<AuditListSettingsChangesResponse> {
        let page = try call.page(request)
        let before = try page.last.map { token in
            guard let revision = Int64(token.string) else { throw Page.invalidToken }
            return revision
        }
        let found = try transaction.settingsChanges(tenantID: call.tenantID, before: before, bounds: page.bounds)
        return .message(
            AuditListSettingsChangesResponse(
                events: try found.events.map { event in
                    var event = try AuditEvent(event, includesProof: false)
                    if call.tenantID.isEmpty, try !mayKnow(event.caller, call.caller, transaction) {
                        event.caller = .empty
                    }
                    return event
                },
                nextPageToken: page.token(behind: found.last.map { Text("\($0)") })))
    }

    private static func mayKnow(
        _ changedBy: Text, _ reader: Caller?, _ transaction: borrowing ReadTransaction
    ) throws -> Bool {
        guard let reader else { return false }
        if changedBy.isEmpty || changedBy == reader.id || reader.has(.projectAdmin) { return true }
        let key = try transaction.get(Tables.apiKeys, TextKey(changedBy))?.apiKey
        return key.map { reader.mayManage($0) } ?? false
    }
}
