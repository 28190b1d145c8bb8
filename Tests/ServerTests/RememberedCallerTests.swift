import Base
import Messages
import TestSupport
import Testing
import Wire

@testable import Service

/// A connection remembers its last caller, tenant and method. The memory must never decide for another credential,
/// another tenant, or a moment before a change that was acknowledged.
@Suite struct RememberedCallerTests {
    /// A credential that a request shows, or the one of the HELLO when it shows none.
    enum Shown: CaseIterable { case none, empty, ada, bob, all, wrong }

    /// The rules that the answers must follow.
    private struct Model {
        var isRevoked = false
        var suspended: Set<Text> = []

        /// The tenant that `Users.Get` finds its user in, or the reason of the refusal.
        func answer(_ shown: Shown, greeted: Shown, tenantID: Text) -> String {
            let own: Text?
            switch shown == .none ? greeted : shown {
            case .ada: own = "tenant-a"
            case .bob where !isRevoked: own = "tenant-b"
            case .all: own = nil
            case .bob, .wrong, .empty, .none: return "CALLER_UNAUTHENTICATED"
            }
            if let own, !tenantID.isEmpty, tenantID != own { return "INSUFFICIENT_PERMISSION" }
            let meant = tenantID.isEmpty ? own ?? .empty : tenantID
            // A project-admin may read a suspended tenant.
            if suspended.contains(meant), own != nil { return "TENANT_SUSPENDED" }
            return "in \(meant)"
        }
    }

    private struct Keys {
        var secrets: [Shown: Secret] = [:]
        var idOfBob: Text = ""

        /// What the metadata holds; nil: none.
        func header(_ shown: Shown) -> Text? {
            switch shown {
            case .none: return nil
            case .empty: return ""
            case .wrong: return "Bearer pk_abcdefghijkl_0123456789012345678901234567890123456789012"
            case .ada, .bob, .all:
                return secrets[shown]?.bearer
            }
        }
    }

    private static func makeTenants(_ admin: RawClient) throws {
        for tenantID in ["tenant-a", "tenant-b", ""] as [Text] {
            if !tenantID.isEmpty {
                let _: TenantsCreateResponse = try admin.call(
                    "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: tenantID))
            }
            let _: UsersCreateResponse = try admin.call(
                "postern.v1.Users/Create",
                UsersCreateRequest(tenantID: tenantID, uid: "u", displayName: Text("in \(tenantID)")))
        }
    }

    private static func makeKey(_ admin: RawClient, _ role: Role, _ tenantID: Text?) throws -> (Secret?, Text) {
        let made: ProjectCreateApiKeyResponse = try admin.call(
            "postern.v1.Project/CreateApiKey",
            ProjectCreateApiKeyRequest(
                role: role, scope: Scope(tenants: tenantID.map { .tenantID($0) } ?? .all(true))))
        return (made.secretKey, made.apiKey?.apiKeyID ?? "")
    }

    private static func makeKeys(_ admin: RawClient) throws -> Keys {
        var keys = Keys()
        (keys.secrets[.ada], _) = try makeKey(admin, .tenantAdmin, "tenant-a")
        (keys.secrets[.all], _) = try makeKey(admin, .projectAdmin, nil)
        (keys.secrets[.bob], keys.idOfBob) = try makeKey(admin, .tenantAdmin, "tenant-b")
        return keys
    }

    /// Makes one change, and has the model follow it.
    private static func change(
        _ model: inout Model, _ keys: inout Keys, _ admin: RawClient, _ random: inout SeededRandom
    ) throws {
        switch Int.random(in: 0..<3, using: &random) {
        case 0 where !model.isRevoked:
            let _: ProjectRevokeApiKeyResponse = try admin.call(
                "postern.v1.Project/RevokeApiKey", ProjectRevokeApiKeyRequest(apiKeyID: keys.idOfBob))
            model.isRevoked = true
        case 0:
            (keys.secrets[.bob], keys.idOfBob) = try makeKey(admin, .tenantAdmin, "tenant-b")
            model.isRevoked = false
        default:
            let tenantID: Text = Bool.random(using: &random) ? "tenant-a" : "tenant-b"
            let isSuspended = model.suspended.remove(tenantID) == nil
            if isSuspended { model.suspended.insert(tenantID) }
            let _: TenantsUpdateResponse = try admin.call(
                "postern.v1.Tenants/Update",
                TenantsUpdateRequest(
                    tenantID: tenantID, tenant: Messages.Tenant(suspended: isSuspended),
                    updateMask: ProtobufFieldMask(paths: ["suspended"])))
        }
    }

    private static func answer(_ frame: RawClient.Frame) throws -> String {
        do {
            let found: UsersGetResponse = try RawClient.response(frame)
            return found.user?.displayName.string ?? ""
        } catch let failure as Failure {
            return failure.reason.description
        }
    }

    private static func counts(_ server: TestServer) -> [Text: UInt64] {
        let most = server.instance.router.service.tenantCalls.most
        return Dictionary(uniqueKeysWithValues: most.map { ($0.tenantID, $0.count) })
    }

    @Test(arguments: [Shown.none, .ada, .bob, .all]) func `The memory of a connection decides nothing by itself`(
        greeted: Shown
    ) async throws {
        var random = SeededRandom.printed()
        try await withServer { server in
            let admin = try server.connect()
            try Self.makeTenants(admin)
            var keys = try Self.makeKeys(admin)
            var model = Model()
            let client = try server.connect(authenticated: false)
            _ = try client.hello(
                WireHello(protocolVersion: 1, software: "test", authorization: keys.header(greeted) ?? ""))
            // A new key of the same name is not the one of the HELLO.
            var isGreeterGone = false
            for _ in 0..<150 {
                try Self.change(&model, &keys, admin, &random)
                if greeted == .bob, model.isRevoked { isGreeterGone = true }
                let before = Self.counts(server)
                var (batch, expected, admitted): ([UInt8], [UInt32: String], [Text: UInt64]) = ([], [:], [:])
                for _ in 0..<Int.random(in: 1...12, using: &random) {
                    let shown = Shown.allCases.randomElement(using: &random) ?? .none
                    let tenantID = (["", "tenant-a", "tenant-b"] as [Text]).randomElement(using: &random) ?? ""
                    let stream = client.nextStream()
                    let metadata = keys.header(shown).map { [OutgoingMetadata.Entry(key: "authorization", value: $0)] }
                    batch += client.request(
                        "postern.v1.Users/Get", UsersGetRequest(tenantID: tenantID, uid: "u"), stream: stream,
                        metadata: metadata ?? [])
                    let says = model.answer(shown, greeted: isGreeterGone ? .wrong : greeted, tenantID: tenantID)
                    expected[stream] = says
                    if says.hasPrefix("in ") { admitted[Text(String(says.dropFirst(3))), default: 0] += 1 }
                }
                try client.send(batch)
                for _ in expected {
                    let frame = try client.readFrame()
                    #expect(try Self.answer(frame) == expected[frame.header.stream])
                }
                // The calls of a batch are counted together, and each once.
                let after = Self.counts(server)
                for tenantID in ["", "tenant-a", "tenant-b"] as [Text] {
                    #expect((after[tenantID] ?? 0) - (before[tenantID] ?? 0) == admitted[tenantID] ?? 0)
                }
            }
        }
    }
}
