import Base
import Identity
import Messages
import Rules
import Store
import TestSupport
import Testing

/// Calls that were admitted before their tenant was deleted, and write after its rows were purged. Nothing would remove
/// what they leave.
@Suite struct DeletedTenantTests {
    private static func reason(_ body: @Sendable () async throws -> Void) async -> String {
        do {
            try await body()
            return ""
        } catch {
            return (error as? Failure)?.reason ?? "\(error)"
        }
    }

    private static func deletedTenant(_ server: TestServer) throws -> TenantSettings {
        let (client, project) = (try server.connect(), server.project)
        let _: TenantsCreateResponse = try client.call(
            "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
        let settings = try project.store.read { try project.tenants.settings(of: "acme", in: $0) }
        let _: TenantsDeleteResponse = try client.call(
            "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "acme"))
        return settings
    }

    /// None of these rows was there before the tenant.
    private static func expectNothing(_ store: Store) throws {
        try store.read { transaction in
            let codeCount = try transaction.count(Tables.oobCodes) + transaction.count(Tables.oobCodeBySubject)
            let messageCount = try transaction.count(Tables.outbox) + transaction.count(Tables.outboxDue)
            #expect(codeCount == 0 && messageCount == 0)
            let smsCount = try transaction.count(Tables.verificationCodes) + transaction.count(Tables.smsBudgets)
            #expect(smsCount == 0)
            let denialCount = try transaction.count(Tables.denials) + transaction.count(Tables.denialHeads)
            let hourCount = try transaction.count(Tables.denialCounts)
            #expect(denialCount == 0 && hourCount == 0)
            // A log that has events has a head. The default pool's is the project's.
            let logOwner = try transaction.tenantWithEvents(after: Text.empty)
            #expect(logOwner == nil)
        }
    }

    @Test func nothingIsSentForADeletedTenant() async throws {
        try await withServer { server in
            let (settings, project) = (try Self.deletedTenant(server), server.project)
            let mail = await Self.reason {
                try await project.oobDelivery.send(
                    OobOrder(.passwordReset, email: "ann@example.com"), answer: AccountsSendOobCodeResponse(),
                    settings: settings, origin: .server)
            }
            #expect(mail == "TENANT_NOT_FOUND")
            let link = await Self.reason {
                _ = try await project.oobDelivery.generate(
                    OobOrder(.emailSignin, email: "ann@example.com"), settings: settings, validateOnly: false,
                    origin: .server)
            }
            #expect(link == "TENANT_NOT_FOUND")
            let number = try #require(PhoneNumber("+14155550123"))
            let code = await Self.reason {
                let request = EndUserRequest(
                    caller: nil, settings: settings, origin: .server,
                    operation: "postern.v1.Accounts/SendVerificationCode",
                    deadline: .now.advanced(by: .seconds(30)))
                _ = try await project.verificationCodes.send(VerificationOrder(to: number, for: .signIn), request)
            }
            #expect(code == "TENANT_NOT_FOUND")
            try Self.expectNothing(project.store)
        }
    }

    @Test func noEventAndNoRefusalIsWrittenForADeletedTenant() async throws {
        try await withServer { server in
            let (settings, project) = (try Self.deletedTenant(server), server.project)
            await project.tenants.tenant("acme").record(
                Denial(toggle: .disabledUserSignup, operation: "postern.v1.Accounts/SignUp"))
            let token = await Self.reason {
                _ = try await project.customTokens.make(
                    uid: "ann", claims: [], lifetimeSeconds: 0, settings: settings, validateOnly: false,
                    origin: .server)
            }
            #expect(token == "TENANT_NOT_FOUND")
            let read = await Self.reason {
                try await project.outbox.noteRead("message", tenantID: "acme", origin: .server)
            }
            #expect(read == "TENANT_NOT_FOUND")
            let ended = await Self.reason {
                _ = try await project.secondFactorEnrollments.endSessionsWithoutFactor(settings, origin: .server)
            }
            #expect(ended == "TENANT_NOT_FOUND")
            try Self.expectNothing(project.store)
        }
    }
}
