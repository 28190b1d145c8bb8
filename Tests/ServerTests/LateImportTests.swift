import Base
import Identity
import Messages
import Rules
import Store
import TestSupport
import Testing

/// Imports and exports that go on after their users, their tenant or its settings were changed.
@Suite struct LateImportTests {
    private static func settings(of tenantID: Text, _ server: TestServer) throws -> TenantSettings {
        let project = server.project
        return try project.store.read { try project.tenants.settings(of: tenantID, in: $0) }
    }

    /// Verifiers refuse tokens of the uid of a generation before the deletion.
    @Test func `Verifiers accept a user who was deleted while the import's batch waited`() async throws {
        try await withServer { server in
            let client = try server.connect()
            let _: UsersCreateResponse = try client.call("postern.v1.Users/Create", UsersCreateRequest(uid: "ada"))
            var importer = try await server.project.imports.begin(
                UsersImportRequest(onConflict: .fail), settings: try Self.settings(of: .empty, server),
                origin: .server)
            let answer = try await importer.importBatch(UsersImportRequest(users: [ImportUser(uid: "ada")])) {
                server.clock.advance(by: .seconds(5))
                let _: UsersDeleteResponse = try client.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: "ada"))
            }
            #expect(answer.createdCount == 1, "\(answer.rejections)")
            let revocations = try server.project.store.read { try $0.revocations(after: 0, limit: 9) }
            let deletion = try #require(revocations.last).revocation
            #expect(deletion.uid == "ada")
            let made: UsersGetResponse = try client.call("postern.v1.Users/Get", UsersGetRequest(uid: "ada"))
            #expect(try #require(made.user).tokensValidAfterMicros >= deletion.validAfterMicros)
        }
    }

    @Test func `An import goes by the tenant's present settings, and not by those of its beginning`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            func allowCostlyHashes(_ isAllowed: Bool) throws {
                try client.setTenant(["allow_costly_hashes"]) { $0.allowCostlyHashes = isAllowed }
            }
            let hash = Secret("$2b$14$vI8aWBnW3fID.ZQ4/zo1G.q1lRps.9cGLcZEiGDMVr5yUP1KUOYTa")
            try allowCostlyHashes(true)
            let first = UsersImportRequest(
                spec: PasswordHashSpec(algorithm: .bcrypt(BcryptSpec())), onConflict: .fail,
                users: [ImportUser(uid: "ada", passwordHash: hash)])
            let stream = try ImportTests.Stream(server.connect(), first)
            #expect(try stream.answer().createdCount == 1)
            try allowCostlyHashes(false)
            try stream.send([ImportUser(uid: "bea", passwordHash: hash)])
            #expect(try stream.answer().rejections.map(\.reason) == ["PASSWORD_HASH_TOO_COSTLY"])
            try stream.end()
        }
    }

    /// Nothing would remove it again.
    @Test func `A deleted tenant gets no signer key and no event`() async throws {
        try await withServer { server in
            let (client, project) = (try server.connect(), server.project)
            let _: TenantsCreateResponse = try client.call(
                "postern.v1.Tenants/Create", TenantsCreateRequest(tenantID: "acme"))
            let settings = try Self.settings(of: "acme", server)
            let _: TenantsDeleteResponse = try client.call(
                "postern.v1.Tenants/Delete", TenantsDeleteRequest(tenantID: "acme"))
            let scrypt = FirebaseScryptSpec(
                signerKey: Secret([UInt8](repeating: 7, count: 64)), saltSeparator: [7], rounds: 8, memoryCost: 14)
            let first = UsersImportRequest(
                tenantID: "acme", spec: PasswordHashSpec(algorithm: .firebaseScrypt(scrypt)), onConflict: .fail)
            let refusedImport = await #expect(throws: Failure.self) {
                _ = try await project.imports.begin(first, settings: settings, origin: .server)
            }
            #expect(refusedImport?.reason == "TENANT_NOT_FOUND")
            let refusedExport = await #expect(throws: Failure.self) {
                _ = try await project.exports.begin(tenantID: "acme", includesSecrets: true, origin: .server)
            }
            #expect(refusedExport?.reason == "TENANT_NOT_FOUND")
            #expect(try project.store.read { try $0.count(Tables.hashSecrets) } == 0)
        }
    }
}
