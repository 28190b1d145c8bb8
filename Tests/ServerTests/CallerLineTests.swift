import Base
import Messages
import Rules
import Store
import Testing

@testable import Service

@Suite struct CallerLineTests {
    @Test func `A caller waits in its tenant's line, and callers of no tenant share one`() {
        let ofAcme = Caller(ApiKey(apiKeyID: "a", role: .app, scope: Scope(tenants: .tenantID("acme"))))
        let ofPool = Caller(ApiKey(apiKeyID: "p", role: .app, scope: Scope(tenants: .tenantID(.empty))))
        let ofAll = (["b", "c"] as [Text]).map { id in
            Caller(ApiKey(apiKeyID: id, role: .app, scope: Scope(tenants: .all(true))))
        }
        let stranger: Caller? = nil
        #expect(ofAcme.line == "acme" && ofPool.line == .empty)
        #expect(ofAll.map(\.line) == [WriteMeter.project, WriteMeter.project])
        #expect(Optional(ofAcme).line == ofAcme.line)
        #expect(Set([ofAcme.line, ofPool.line, ofAll[0].line, stranger.line, WorkLine.server]).count == 5)
    }
}
