import Base
import Messages

/// Asks for users that `postern-bench users` imported, one call after the other, by each index in turn.
struct UserLookups {
    /// A way to find a user, or a page of them, without reading others.
    enum Kind: String, CaseIterable {
        case get = "Get"
        case byEmail = "GetByEmail"
        case byPhone = "GetByPhone"
        case byProvider = "GetByProvider"
        case emailPrefix = "Query email prefix"
        case phonePrefix = "Query phone prefix"
        case provider = "Query provider, raw id"
        case created = "Query created"
        case count = "Count"
    }

    /// The users in a page of a query: as many as a person reads.
    private static let pageSize: Int32 = 20
    private static let service: Text = "postern.v1.Users"

    let tenantID: Text
    let userCount: Int
    let seed: Int
    let connection: Connection

    /// Measures how long each call takes. Every answer is checked to hold the users that were asked for.
    func measure(_ kind: Kind, count: Int) throws -> Histogram {
        var generator = SeededGenerator(seed: UInt64(seed))
        let newest = kind == .created ? try newestMicros() : 0
        var latency = Histogram()
        for _ in 0..<count {
            let number = generator.below(userCount)
            let start = Instant.now
            let found = try ask(kind, number, newest: newest)
            latency.record(UInt64(Instant.now.nanoseconds(since: start)))
            guard found else { throw BenchError(.failed, "\(kind.rawValue): user \(number) is not in the answer") }
        }
        return latency
    }

    func storedCount() throws -> Int64 {
        try call("Count", UsersCountRequest(tenantID: tenantID)) { try UsersCountResponse(decoding: $0).count }
    }

    private func ask(_ kind: Kind, _ number: Int, newest: Int64) throws -> Bool {
        let uid = UserName.uid(number)
        switch kind {
        case .get:
            return try call("Get", UsersGetRequest(tenantID: tenantID, uid: uid)) {
                try UsersGetResponse(decoding: $0).user?.uid == uid
            }
        case .byEmail:
            return try call("GetByEmail", UsersGetByEmailRequest(tenantID: tenantID, email: UserName.email(number))) {
                try UsersGetByEmailResponse(decoding: $0).user?.uid == uid
            }
        case .byPhone:
            let request = UsersGetByPhoneRequest(tenantID: tenantID, phoneNumber: ScaleUser.phoneNumber(number))
            return try call("GetByPhone", request) { try UsersGetByPhoneResponse(decoding: $0).user?.uid == uid }
        case .byProvider:
            let request = UsersGetByProviderRequest(
                tenantID: tenantID,
                identity: ProviderIdentity(providerID: ScaleUser.providerID, rawID: ScaleUser.rawID(number)))
            return try call("GetByProvider", request) { try UsersGetByProviderResponse(decoding: $0).user?.uid == uid }
        case .count: return try storedCount() >= Int64(userCount)
        case .emailPrefix, .phonePrefix, .provider, .created:
            return try query(kind, number, newest: newest)
        }
    }

    /// Prefixes are all but the last digit, so that ten users have them.
    private func query(_ kind: Kind, _ number: Int, newest: Int64) throws -> Bool {
        var request = UsersQueryRequest(tenantID: tenantID, pageSize: Self.pageSize)
        switch kind {
        case .emailPrefix:
            let digits = UserName.uid(number).bytes.suffix(UserName.numberByteCount).dropLast()
            request.emailPrefix = Text(unchecked: [UInt8(ascii: "u")] + digits)
        case .phonePrefix:
            request.phoneNumberPrefix = Text(unchecked: Array(ScaleUser.phoneNumber(number).bytes.dropLast()))
        case .provider:
            request.providerID = ScaleUser.providerID
            request.rawID = ScaleUser.rawID(number)
        default:
            // Users were created a second apart.
            let created = newest - Int64(userCount - 1 - number) * ScaleUser.createdApartMicros
            request.order = .created
            request.createdFromMicros = created
            request.createdBeforeMicros = created + 10 * ScaleUser.createdApartMicros
        }
        let uid = UserName.uid(number)
        return try call("Query", request) { message in
            try UsersQueryResponse(decoding: message).users.contains { $0.uid == uid }
        }
    }

    /// When the last user was created: an earlier run may have made it.
    private func newestMicros() throws -> Int64 {
        try call("Get", UsersGetRequest(tenantID: tenantID, uid: UserName.uid(userCount - 1))) {
            try UsersGetResponse(decoding: $0).user?.createdAtMicros ?? 0
        }
    }

    private func call<Result>(
        _ method: Text, _ request: some Message, _ read: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try connection.call(service: Self.service, method: method, request) { result in
            switch result {
            case .ok(let message): return try read(message)
            case .refused(let reason): throw BenchError(.failed, "\(method): \(reason)")
            }
        }
    }
}
