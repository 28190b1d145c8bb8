public import Base
public import Messages
import Rules
import Store

extension UserDirectory {
    /// Deletes users, some in each write. Users that are deleted stay deleted when the call ends early.
    public func delete(
        _ uids: [Text], tenantID: Text, force: Bool, validateOnly: Bool, origin: Origin
    ) async throws -> UsersBatchDeleteResponse {
        try await resources.answeringRepeat(
            ofSeveralWrites: origin, validateOnly: validateOnly, for: .removal, keeping: { $0.deletesMoreThanItRefuses }
        ) {
            try await deleteEach(uids, tenantID: tenantID, force: force, validateOnly: validateOnly, origin: origin)
        }
    }

    private func deleteEach(
        _ uids: [Text], tenantID: Text, force: Bool, validateOnly: Bool, origin: Origin
    ) async throws -> UsersBatchDeleteResponse {
        var answer = UsersBatchDeleteResponse()
        var seen: Set<Text> = []
        var wanted: [(index: Int, key: UserKey)] = []
        for (index, uid) in uids.enumerated() {
            if uid.byteCount > resources.limits.uidMax {
                answer.reject(index, Values.shortenedUID(uid, limits: resources.limits), .userNotFound)
            } else if seen.insert(uid).inserted {
                wanted.append((index, UserKey(tenantID, uid)))
            } else {
                answer.reject(index, uid, .namedTwice)
            }
        }
        let now = resources.clock.now()
        let refusals = try await changing(each: wanted.map(\.key), key: { $0 }, for: .removal) {
            transaction, key -> Failure? in
            guard let account = try transaction.reading.account(key) else { return .userNotFound }
            guard force || account.user.disabled else { return .userNotDisabled }
            if !validateOnly { try transaction.remove(account, origin: origin, now: now) }
            return nil
        }
        for ((index, key), refusal) in zip(wanted, refusals) {
            if let refusal {
                answer.reject(index, key.uid, refusal)
            } else {
                answer.deletedCount += 1
            }
        }
        answer.rejections.sort { $0.index < $1.index }
        return answer
    }
}

extension UsersBatchDeleteResponse {
    /// Whether the call made room for its answer. Deleting has no quota of bytes, so that a full tenant can delete. If
    /// every answer were kept, a caller could store as many as it likes, with uids that do not exist.
    fileprivate var deletesMoreThanItRefuses: Bool { Int(deletedCount) > rejections.count }

    fileprivate mutating func reject(_ index: Int, _ uid: Text, _ failure: Failure) {
        rejections.append(
            BatchRejection(
                index: Int32(clamping: index), uid: uid, reason: Text(failure.reason), message: Text(failure.message)))
    }
}

extension Failure {
    fileprivate static let namedTwice = Failure(.namedTwice, "The batch names this user before.")
    fileprivate static let userNotDisabled = Failure(
        .userNotDisabled, "The user is not disabled; disable the user first, or send force.")
}
