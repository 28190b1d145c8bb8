import Base
import Messages

// A tenant that this tool did not make.
extension Connection {
    private static let users: Text = "postern.v1.Users"

    /// Refuses to put users into a tenant that has some, and none that this tool makes first: it may be a real one, and
    /// everybody can read the password of seeded users in the sources.
    func refuseTenantOfOthers(_ tenantID: Text) throws {
        let count = try call(
            service: Self.users, method: "Count", UsersCountRequest(tenantID: tenantID)
        ) { result -> Int64 in
            switch result {
            case .ok(let message): try UsersCountResponse(decoding: message).count
            case .refused(let reason): throw BenchError(.notReady, "Users/Count of \(tenantID): \(reason)")
            }
        }
        guard count > 0 else { return }
        for email in [UserName.email(0), UserName.passwordEmail(0), UserName.sessionEmail(0)] {
            let request = UsersGetByEmailRequest(tenantID: tenantID, email: email)
            let isFound = try call(service: Self.users, method: "GetByEmail", request) { result -> Bool in
                if case .ok = result { true } else { false }
            }
            if isFound { return }
        }
        throw UsageError(
            """
            tenant \(tenantID) has users that this tool did not make: take another --tenant, or say --i-own-this
            """)
    }
}
