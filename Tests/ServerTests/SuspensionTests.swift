import Base
import Identity
import Messages
import Rules
import Store
import TestSupport
import Testing
import Wire

@testable import Service

/// A project-admin suspends a tenant: every method is closed to it, and its own admins cannot open it again.
@Suite struct SuspensionTests {
    private struct Caller: CustomTestStringConvertible, Sendable {
        let role: Role
        /// Nil: all tenants.
        let tenantID: Text?

        var testDescription: String { "\(role.name) of \(tenantID.map { "\"\($0)\"" } ?? "all tenants")" }

        static let all: [Caller] =
            [Role.verifier, .app, .tenantAdmin].flatMap {
                [Caller(role: $0, tenantID: "acme"), Caller(role: $0, tenantID: nil)]
            } + [Caller(role: .projectAdmin, tenantID: nil)]
    }

    /// Every method × every kind of caller who may call it × the suspended tenant, another one, and none named.
    @Test(arguments: Caller.all) private func everyMethodIsClosed(_ caller: Caller) async throws {
        try await withServer { server in
            for tenantID in ["acme", "free"] as [Text] { try server.makeTenant(tenantID) }
            let client = try server.client(as: caller.role, of: caller.tenantID)
            _ = try client.hello()
            try server.updateTenant("acme", ["suspended"]) { $0.suspended = true }
            var count = 0
            for method in server.instance.router.registry.all.map(\.descriptor)
            where method.role != .unspecified && method.role.rawValue <= caller.role.rawValue && method.tenant != .named
            {
                let named: [Text] = caller.tenantID == nil ? ["acme", "free", ""] : ["acme", ""]
                for tenantID in method.tenant == .unspecified ? [""] : named {
                    // An empty request begins a bidirectional stream, and its first message is judged later.
                    if method.requestStreaming, caller.tenantID == nil, tenantID.isEmpty { continue }
                    let sent = method.requestStreaming && tenantID.isEmpty ? "acme" : tenantID
                    count += 1
                    // tenant_id is field 1 wherever a method is about a tenant.
                    let failure = try client.refusal(of: method, TenantsGetRequest(tenantID: sent))
                    let reason = failure?.reason.description ?? ""
                    let means =
                        method.tenant == .unspecified ? caller.tenantID : tenantID.isEmpty ? caller.tenantID : tenantID
                    let isExempt =
                        ["Tenants/Get", "Tokens/WatchRevocations"].contains { method.fullName.hasSuffix("v1.\($0)") }
                        || caller.role == .projectAdmin && method.role.rawValue >= Role.tenantAdmin.rawValue
                    let isExpected = means == "acme" && !isExempt
                    #expect(
                        (reason == "TENANT_SUSPENDED") == isExpected,
                        "\(method.fullName) for \"\(tenantID)\": \(reason)")
                }
            }
            #expect(count > 8)
        }
    }

    @Test func `Its admin sees why, and cannot undo it`() async throws {
        try await withServer { server in
            try server.makeTenant("acme")
            let admin = try server.client(as: .tenantAdmin, of: "acme")
            for path in ["suspended", "suspension_reason"] as [Text] {
                expectRefusal("INSUFFICIENT_PERMISSION") {
                    try TestServer.updateTenant("acme", [path], by: admin) { $0.suspended = true }
                }
            }
            try server.updateTenant("acme", ["suspended", "suspension_reason"]) {
                $0.suspended = true
                $0.suspensionReason = "unpaid since May"
            }
            let found: TenantsGetResponse = try admin.call("postern.v1.Tenants/Get", TenantsGetRequest())
            #expect(found.tenant?.suspended == true && found.tenant?.suspensionReason == "unpaid since May")
            let refused = failure {
                try TestServer.updateTenant("acme", ["disable_auth"], by: admin) { $0.disableAuth = false }
            }
            #expect(refused.reason == "TENANT_SUSPENDED" && refused.code == .permissionDenied)
            #expect(refused.message.contains("unpaid since May"))
            #expect(refused.metadata("required_role") == "project-admin")
            try server.updateTenant("acme", ["suspended"]) { _ in }
            try TestServer.updateTenant("acme", ["disable_auth"], by: admin) { $0.disableAuth = true }
        }
    }

    @Test func `Verifiers hear of it, and of its end, as of disable_auth`() async throws {
        try await withServer { server in
            try server.makeTenant("acme")
            func kinds() throws -> [RevocationKind] {
                try server.project.store.read { transaction in
                    try transaction.revocations(after: 0, limit: 100).map(\.revocation)
                        .filter { $0.tenantID == "acme" }.map(\.kind)
                }
            }
            try server.updateTenant("acme", ["suspended"]) { $0.suspended = true }
            #expect(try kinds() == [.tenantDisabled])
            // A second reason is not announced, and neither is the end of one while the other is left.
            try server.updateTenant("acme", ["disable_auth"]) { $0.disableAuth = true }
            try server.updateTenant("acme", ["suspended"]) { $0.suspended = false }
            #expect(try kinds() == [.tenantDisabled])
            try server.updateTenant("acme", ["disable_auth"]) { $0.disableAuth = false }
            #expect(try kinds() == [.tenantDisabled, .tenantEnabled])
        }
    }

    @Test func `A token of a suspended tenant is refused to verifiers of any tenant, too`() async throws {
        try await withServer { server in
            try server.makeTenant("acme")
            let made: AccountsSignUpResponse = try server.connect().call(
                "postern.v1.Accounts/SignUp",
                AccountsSignUpRequest(
                    tenantID: "acme", email: "ada@example.com", password: Secret("correct horse")))
            let verifier = try server.client(as: .verifier, of: nil)
            let request = TokensVerifyIdTokenRequest(idToken: made.tokens?.idToken ?? .empty, anyTenant: true)
            let _: TokensVerifyIdTokenResponse = try verifier.call("postern.v1.Tokens/VerifyIdToken", request)
            try server.updateTenant("acme", ["suspended"]) { $0.suspended = true }
            expectRefusal("TENANT_SUSPENDED") {
                let _: TokensVerifyIdTokenResponse = try verifier.call("postern.v1.Tokens/VerifyIdToken", request)
            }
        }
    }

    @Test(arguments: [String(repeating: "x", count: 513), "two\nlines", "\u{7F}"])
    func `A reason is one line of at most 512 bytes`(reason: String) async throws {
        try await withServer { server in
            try server.makeTenant("acme")
            expectRefusal("INVALID_SUSPENSION_REASON") {
                try server.updateTenant("acme", ["suspension_reason"]) { $0.suspensionReason = Text(reason) }
            }
        }
    }
}
