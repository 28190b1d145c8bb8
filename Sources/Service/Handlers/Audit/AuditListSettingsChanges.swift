import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Audit/ListSettingsChanges
///
/// The default pool's may be read by its admins, unlike the rest of its log: they read the settings, too.
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
                events: try found.events.map { try AuditEvent($0, includesProof: false) },
                nextPageToken: page.token(behind: found.last.map { Text("\($0)") })))
    }
}
