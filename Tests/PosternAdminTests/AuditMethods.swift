import Base
import Messages
import PosternAdmin
import Testing

/// The methods of the event log, called once each.
enum AuditMethods {
    static func call(_ admin: TenantAdmin, _ recorder: MethodRecorder) async throws {
        let listed = try await recorder.expect("Audit/ListEvents") {
            try await admin.listEvents(EventFilter(uid: "ada"), oldestFirst: true, includeProof: true).all()
        }
        let first = try #require(listed.first)
        #expect(first.kind == .userCreated && first.proof?.payload.isEmpty == false)
        #expect(listed.allSatisfy { $0.uid == "ada" })
        let watched = try await recorder.expect("Audit/WatchEvents") {
            var feed = admin.watchEvents(EventFilter(kinds: [.userCreated]), after: 0).makeAsyncIterator()
            return try await feed.next()
        }
        #expect(watched?.sequence == first.sequence && watched?.proof == nil)
        let changes = try await recorder.expect("Audit/ListSettingsChanges") {
            try await admin.listSettingsChanges().all()
        }
        #expect(changes.last?.kind == .tenantCreated && changes.last?.settingsChange?.revision == 1)
        let (checkpoint, signed) = try await recorder.expect("Audit/SignCheckpoint") {
            try await admin.signCheckpoint()
        }
        #expect(checkpoint.sequence >= first.sequence && signed.checkpoint == checkpoint.encoded())
    }
}
