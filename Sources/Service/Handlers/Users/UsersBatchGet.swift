import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/BatchGet: to look for 400 names takes as long as a page of a list.
enum UsersBatchGet: PageMethod {
    static func handle(
        _ request: UsersBatchGetRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersBatchGetResponse> {
        let names = try names(in: request, limits: call.limits)
        let found = try transaction.users(
            named: names, tenantID: call.tenantID, byteCountMax: call.limits.pageBytesMax)
        return .list(UsersBatchGetResponse.FieldNumber.users, found.users, found.rest)
    }

    private static func names(in request: UsersBatchGetRequest, limits: Limits) throws(Failure) -> [UserName] {
        let counts = [
            ("uids", request.uids.count), ("emails", request.emails.count),
            ("phone_numbers", request.phoneNumbers.count), ("identities", request.identities.count),
        ]
        for (field, count) in counts where count > limits.administration.batchGetMax {
            throw .invalid(.tooManyItems, field: field, "must have at most \(limits.administration.batchGetMax) items")
        }
        let names =
            request.uids.map { UserName(name: .uid($0)) } + request.emails.map { UserName(name: .email($0)) }
            + request.phoneNumbers.map { UserName(name: .phoneNumber($0)) }
            + request.identities.map { UserName(name: .identity($0)) }
        for name in names { try name.check(limits: limits) }
        return names
    }
}

extension ReadTransaction {
    /// The users with these names, each once, where they lie in the database; the names without a user, each as often
    /// as it stands there; and the names behind the first `byteCountMax` bytes of users, which are not looked up. The
    /// caller has checked the names.
    func users(
        named names: [UserName], tenantID: Text, byteCountMax: Int
    ) throws -> (users: [UnsafeRawBufferPointer], rest: UsersBatchGetResponse) {
        var finder = UserFinder(tenantID: tenantID)
        var users: [UnsafeRawBufferPointer] = []
        var byteCount = 0
        var seen: Set<Text> = []
        var rest = UsersBatchGetResponse()
        for name in names {
            if byteCount >= byteCountMax {
                rest.notRead.append(name)
            } else if let user = try finder.user(named: name, in: self) {
                guard seen.insert(user.uid).inserted else { continue }
                users.append(user.encoded)
                byteCount += user.encoded.count
            } else {
                rest.notFound.append(name)
            }
        }
        return (users, rest)
    }
}
