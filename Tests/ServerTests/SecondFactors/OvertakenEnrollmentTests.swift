import Base
import Messages
import Store
import TestSupport
import Testing

@testable import Identity

/// An enrolment is begun while the session that asks for it ends.
@Suite struct OvertakenEnrollmentTests {
    /// A user has one begun enrolment at a time, so a thief could keep the owner from enrolling.
    @Test func `A session that has ended begins none in the place of the owner's`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            try client.setFactors(.enabled)
            let thief = try client.verifiedUser("ada@example.com")
            let key = UserKey(.empty, try client.find("ada@example.com").uid)
            let refused = try await failureOfCall(
                server,
                overtakenByWrite: { transaction in
                    try transaction.endSessions(of: key, .signedOut, now: server.clock.clock.now())
                }
            ) { _ = try IdentityClient(server).startApp(thief.idToken) }
            #expect(refused.reason == "TOKEN_EXPIRED")
            let stored = try server.project.store.read { try $0.get(Tables.secondFactors, key) }
            #expect(stored == nil)
        }
    }
}
