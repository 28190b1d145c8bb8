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
    ///
    /// A name that stands there again is not looked up again, nor is a user read again that has several of the names.
    func users(
        named names: [UserName], tenantID: Text, byteCountMax: Int
    ) throws -> (users: [UnsafeRawBufferPointer], rest: UsersBatchGetResponse) {
        var users: [UnsafeRawBufferPointer] = []
        var byteCount = 0
        var rest = UsersBatchGetResponse()
        var isFound: [UserLookup: Bool] = [:]
        var seen: Set<Text> = []
        for name in names {
            guard byteCount < byteCountMax else {
                rest.notRead.append(name)
                continue
            }
            let lookup = UserLookup(name)
            if isFound[lookup] == nil {
                let uid = try uid(named: name, tenantID: tenantID)
                if let uid, !seen.contains(uid), let user = try encodedUser(UserKey(tenantID, uid)) {
                    seen.insert(uid)
                    users.append(user)
                    byteCount += user.count
                }
                isFound[lookup] = uid.map { seen.contains($0) } ?? false
            }
            if isFound[lookup] == false { rest.notFound.append(name) }
        }
        return (users, rest)
    }
}

/// What is looked up for a name of a user: the same for two names that cannot but find the same user.
private enum UserLookup: Hashable {
    case uid(Text)
    case email(Text)
    case phoneNumber(Text)
    /// The user with the email, if there is a password.
    case password(Text)
    case identity(IdentityName)
    case nothing

    init(_ name: UserName) {
        switch name.name {
        case nil: self = .nothing
        case .uid(let uid): self = .uid(uid)
        case .email(let email): self = .email(Self.canonical(email))
        case .phoneNumber(let number): self = .phoneNumber(number)
        case .identity(let identity):
            switch identity.providerID {
            case ProviderInfo.password: self = .password(Self.canonical(identity.rawID))
            case ProviderInfo.phone: self = .phoneNumber(identity.rawID)
            default: self = .identity(IdentityName(identity.entry))
            }
        }
    }

    private static func canonical(_ email: Text) -> Text { Email(stored: email)?.canonical ?? email }
}
