import Base
import Identity
import Messages
import Rules
import Store

/// postern.v1.Users/BatchGet
enum UsersBatchGet: FastMethod {
    static func handle(
        _ request: UsersBatchGetRequest, _ call: borrowing ReadCall, _ transaction: borrowing ReadTransaction
    ) throws -> Reply<UsersBatchGetResponse> {
        let names = try names(in: request, limits: call.limits)
        var seen: Set<Text> = []
        var users: [UnsafeRawBufferPointer] = []
        var byteCount = 0
        var rest = UsersBatchGetResponse()
        for name in names {
            guard byteCount < call.limits.pageBytesMax else {
                rest.notRead.append(name)
                continue
            }
            guard let uid = try transaction.uid(named: name, tenantID: call.tenantID),
                let user = try transaction.encodedUser(UserKey(call.tenantID, uid))
            else {
                rest.notFound.append(name)
                continue
            }
            guard seen.insert(uid).inserted else { continue }
            users.append(user)
            byteCount += user.count
        }
        return .list(UsersBatchGetResponse.FieldNumber.users, users, rest)
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
