public import Base
public import Messages
public import Rules
import Store

extension UserDirectory {
    private enum Outcome: Sendable {
        case changed, unchanged
        /// The user was deleted meanwhile, or no longer matches the query.
        case left
        case refused(Failure)
    }

    /// Changes the next users after `last` that a query finds, at most `countMax`, some in each write and each as
    /// `UserSession.administer` does. `pageToken` makes the answer's page token of the position to go on from. Users
    /// that are changed stay changed when the call ends early. UPGRADE_PENDING.
    public func update(
        _ query: UserQuery, by patch: UserPatch, tenantID: Text, after last: Text?, countMax: Int, validateOnly: Bool,
        origin: Origin, pageToken: (Text?) -> Text
    ) async throws -> UsersUpdateManyResponse {
        try await resources.answeringRepeat(ofSeveralWrites: origin, validateOnly: validateOnly) {
            let page = try await updatePage(
                query, by: patch, tenantID: tenantID, after: last, countMax: countMax, validateOnly: validateOnly,
                origin: origin)
            var answer = page.answer
            answer.nextPageToken = pageToken(page.last)
            return answer
        }
    }

    private func updatePage(
        _ query: UserQuery, by patch: UserPatch, tenantID: Text, after last: Text?, countMax: Int, validateOnly: Bool,
        origin: Origin
    ) async throws -> (answer: UsersUpdateManyResponse, last: Text?) {
        let limits = resources.limits
        let (uids, scanned, next) = try resources.store.read { transaction in
            let page = try transaction.users(
                query, tenantID: tenantID, after: last, bounds: PageBounds(itemMax: countMax, limits: limits))
            return (try page.users.map { try User(stored: $0).uid }, page.rowReadCount, page.last)
        }
        var answer = UsersUpdateManyResponse(scanned: Int32(clamping: scanned))
        let outcomes = try await update(
            uids.map { UserKey(tenantID, $0) }, query, by: patch, validateOnly: validateOnly, origin: origin)
        for (index, outcome) in outcomes.enumerated() {
            switch outcome {
            case .changed: answer.changedCount += 1
            case .unchanged: answer.unchangedCount += 1
            case .left: break
            case .refused(let failure):
                answer.rejections.append(
                    BatchRejection(
                        index: Int32(clamping: index), uid: uids[index], reason: Text(failure.reason),
                        message: Text(failure.message)))
            }
        }
        return (answer, next)
    }

    private func update(
        _ keys: [UserKey], _ query: UserQuery, by patch: UserPatch, validateOnly: Bool, origin: Origin
    ) async throws -> [Outcome] {
        let now = resources.clock.now()
        let limits = resources.limits
        return try await changing(each: keys, key: { $0 }) { transaction, key in
            guard let account = try transaction.reading.account(key),
                try account.user.encoded().withUnsafeBytes({ try query.filter.matches($0) })
            else { return .left }
            let wanted: AdminChange?
            do throws(Failure) {
                wanted = try patch.change(of: account.user, limits: limits)
            } catch {
                return .refused(error)
            }
            guard let wanted else { return .unchanged }
            if !validateOnly { _ = try transaction.administer(key, wanted, origin: origin, now: now) }
            return .changed
        }
    }
}
