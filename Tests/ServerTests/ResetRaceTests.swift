import Base
import Messages
import TestSupport
import Testing

/// A password reset by whoever proves the address of somebody else's account makes an account of its own. Its hook is
/// asked between the look at the other account and the transaction; here the other account changes in that moment.
@Suite struct ResetRaceTests {
    private static let email: Text = "mallory@evil.example"

    enum Change: CaseIterable {
        case password, email, disabled, deleted
        /// Concerns neither the code nor the email.
        case displayName
    }

    private static func make(_ change: Change, of uid: Text, _ admin: IdentityClient) throws {
        switch change {
        case .password: try admin.update(uid, ["password"]) { $0.password = Secret("the admin's horse") }
        case .email: try admin.update(uid, ["email"]) { $0.email = "third@example.com" }
        case .disabled: try admin.update(uid, ["disabled"]) { $0.disabled = true }
        case .deleted:
            let _: UsersDeleteResponse = try admin.client.call("postern.v1.Users/Delete", UsersDeleteRequest(uid: uid))
        case .displayName: try admin.update(uid, ["display_name"]) { $0.displayName = "Ann" }
        }
    }

    @Test(arguments: Change.allCases)
    func `A reset is decided over the other account as it is by then`(_ change: Change) async throws {
        try await withServer { server in
            let client = try IdentityClient(server)
            let (ann, code) = try BlockingHookTests.mallorysCode(client)
            let hook = ActingHook(point: \.beforeCreate, field: "before_create") {
                try Self.make(change, of: ann, try IdentityClient(server))
            }
            let before = try client.get(ann)
            try hook.run(client) {
                let reason = failure { _ = try client.resetPassword(code, "mallory's horse") }.reason
                #expect(reason == (change == .displayName ? "" : "INVALID_OOB_CODE"))
            }
            let listed: UsersListResponse = try client.client.call("postern.v1.Users/List", UsersListRequest())
            let made = listed.users.filter { $0.uid != ann }
            #expect(made.map(\.email) == (change == .displayName ? [Self.email] : []))
            guard change != .deleted else { return }
            let after = try client.get(ann)
            switch change {
            case .displayName: #expect(after.email == "ann@example.com" && after.displayName == "Ann")
            case .email: #expect(after.email == "third@example.com")
            case .password, .disabled, .deleted: #expect(after.email == before.email)
            }
            // Nobody has the refused password.
            guard change == .password else { return }
            _ = try client.signIn(Self.email, password: "the admin's horse")
            expectRefusal("INVALID_PASSWORD") { _ = try client.signIn(Self.email, password: "mallory's horse") }
        }
    }
}
