import Base
import Identity
import Messages
import Rules
import Store
import TestSupport
import Testing

/// A change by a token waits for its turn behind the change that ends the token.
@Suite struct FormerTokenAttackTests {
    @Test func `A deletion and a change of the profile look at the token again`() async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let made = try client.signUp("ada@example.com")
            let (uid, token) = (try #require(made.user).uid, try #require(made.tokens).idToken)
            let project = server.project
            let asker = try project.store.read { transaction in
                let settings = try project.tenants.settings(of: .empty, in: transaction)
                return try project.tokenCheck.verifiedUser(token, settings: settings, in: transaction)
            }
            let session = project.users.session(tenantID: .empty, uid: uid)
            var change = ProfileChange()
            change.displayName = "Ada"
            let named = try await session.update(change, by: asker, origin: .server, validateOnly: false)
            #expect(named.displayName == "Ada")
            let _: AccountsUpdateResponse = try client.client.call(
                "postern.v1.Accounts/Update",
                AccountsUpdateRequest(
                    idToken: token, updateMask: ProtobufFieldMask(paths: ["password"]),
                    password: Secret("a new password")))
            await #expect(throws: Failure.self) {
                try await session.delete(by: asker, origin: .server, validateOnly: false)
            }
            change.displayName = "Thief"
            let second = change
            await #expect(throws: Failure.self) {
                _ = try await session.update(second, by: asker, origin: .server, validateOnly: false)
            }
            #expect(try client.get(uid).displayName == "Ada")
        }
    }
}
