import Base
import Messages
import PosternClient

/// Users on the command line: by uid, email or phone number.
extension Session {
    /// The uid of a user that is named by any of the three. A name that looks like an email or a phone number, but
    /// belongs to no user of the tenant, is taken for a uid, which may hold anything.
    func uid(named name: String) async throws -> Text {
        let isEmail = name.contains("@")
        guard isEmail || name.hasPrefix("+") else { return Text(name) }
        let (tenantID, options) = (try tenantID(), try callOptions())
        let client = UsersClient(channel: try channel())
        do throws(Failure) {
            let email = UsersGetByEmailRequest(tenantID: tenantID, email: Text(name))
            if isEmail { return try await client.getByEmail(email, options: options).user?.uid ?? Text(name) }
            let number = UsersGetByPhoneRequest(tenantID: tenantID, phoneNumber: Text(name))
            return try await client.getByPhone(number, options: options).user?.uid ?? Text(name)
        } catch {
            guard error.is(.userNotFound) || error.is(.invalidEmail) || error.is(.invalidPhoneNumber) else {
                throw error
            }
            return Text(name)
        }
    }
}
