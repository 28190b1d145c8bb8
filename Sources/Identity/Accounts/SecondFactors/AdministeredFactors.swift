public import Base
public import Messages
public import Rules
import Store

// The changes that administrators make to the second factors of users.

extension SecondFactorEnrollments {
    /// Gives a user a phone number that counts as verified. For the refusals see Users.AddSecondFactor.
    ///
    /// No recovery codes are made: only the user may see them.
    public func add(
        phone number: PhoneNumber, displayName: Text, to key: UserKey, origin: Origin, validateOnly: Bool
    ) async throws -> UsersAddSecondFactorResponse {
        let now = resources.clock.now()
        let factor = SecondFactor(
            factorID: resources.random.alphanumeric(20), kind: .phone, displayName: displayName,
            phoneNumber: number.text, enrolledAtMicros: now.microseconds)
        return try await users.session(key).write { transaction in
            try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                guard let current = try transaction.reading.account(key) else { throw Failure.userNotFound }
                try SecondFactorRules.checkNew(number, for: current.user)
                try SecondFactorRules.checkRoom(current.user)
                if validateOnly { return UsersAddSecondFactorResponse(user: current.user) }
                var changed = current
                // The end user made no call, so no address is known to be the user's.
                changed.add(factor, from: nil)
                try transaction.replace(
                    current, by: changed, origin: origin, kind: .secondFactorEnrolled, detail: factor.eventDetail,
                    now: now)
                // The change may have been asked for in a session that showed no factor.
                try transaction.removeOobCodesAskedFromSessions(of: key)
                return UsersAddSecondFactorResponse(user: changed.user, factorID: factor.factorID)
            }
        }
    }

    /// Removes one factor of a user, or all (nil), and ends the sessions that showed it. For the refusals see
    /// Users.RemoveSecondFactor.
    public func remove(
        _ factorID: Text?, of key: UserKey, origin: Origin, validateOnly: Bool
    ) async throws -> User {
        let now = resources.clock.now()
        return try await users.session(key).write(for: .removal) { transaction in
            try transaction.answeringRepeat(of: origin, validateOnly: validateOnly, now: now) {
                guard let current = try transaction.reading.account(key) else { throw Failure.userNotFound }
                let factor = try factorID.map { id throws(Failure) in try current.user.secondFactor(id) }
                if validateOnly { return current.user }
                var changed = current
                if let factor {
                    try transaction.removeFactor(factor.factorID, from: &changed)
                } else {
                    try transaction.removeFactors(from: &changed)
                }
                try transaction.replace(
                    current, by: changed, origin: origin, kind: .secondFactorRemoved,
                    detail: factor?.eventDetail ?? "all", now: now)
                try transaction.endSessions(thatShowed: factor, of: changed, origin: origin, now: now)
                return changed.user
            }
        }
    }

    private static let usersPerSlice = 100

    /// Ends every session of a tenant that showed no second factor, in slices of users; returns how many it ended.
    /// TenantsUpdate.
    ///
    /// A call that is cancelled or overdue stops between two slices; when it is repeated, it goes on where it stopped.
    public func endSessionsWithoutFactor(_ settings: TenantSettings, origin: Origin) async throws -> Int64 {
        // The change of the settings has the record under the request's key.
        let step = origin.inStep("end sessions without a factor")
        do {
            let ended = try await resources.answeringRepeat(ofSeveralWrites: step, for: .removal) {
                try await StoredCount(count: endEachWithoutFactor(settings, origin: origin))
            }
            return ended.count
        } catch let error as StoreError {
            // The settings were changed before, and some of the sessions may have been ended.
            throw error.afterEarlierWrites
        }
    }

    private func endEachWithoutFactor(_ settings: TenantSettings, origin: Origin) async throws -> Int64 {
        var (last, count): (UserSessionKey?, Int64) = (nil, 0)
        while true {
            try Task.checkCancellation()
            let slice = try usersOfSessions(settings.tenantID, after: last)
            guard let next = slice.next else { break }
            last = next
            let now = resources.clock.now()
            let counts = try await users.changing(each: slice.users, key: { $0 }, for: .removal) { transaction, key in
                try transaction.endSessionsWithoutFactor(of: key, settings: settings, origin: origin, now: now)
            }
            count += counts.reduce(0, +)
        }
        let (now, ended) = (resources.clock.now(), count)
        try await resources.store.write(for: .removal) { transaction in
            try transaction.reading.requireLiveTenant(settings.tenantID)
            try transaction.appendEvent(
                .sessionsWithoutFactorEnded, tenantID: settings.tenantID, origin: origin, detail: Text("\(ended)"),
                now: now)
        }
        return count
    }

    /// The users of the next sessions, and the last of those sessions; nil when there is none.
    private func usersOfSessions(
        _ tenantID: Text, after last: UserSessionKey?
    ) throws -> (users: [UserKey], next: UserSessionKey?) {
        try resources.store.read { transaction in
            var (users, next): ([UserKey], UserSessionKey?) = ([], last)
            var isAny = false
            try transaction.scan(
                Tables.sessionByUser, prefix: TenantPrefix(tenantID), from: last.map { .after($0) } ?? .first,
                limit: Self.usersPerSlice
            ) { row in
                let key = try row.key
                (next, isAny) = (key, true)
                let user = UserKey(key.tenant, key.uid)
                if users.last != user { users.append(user) }
                return true
            }
            return (users, isAny ? next : nil)
        }
    }
}

extension WriteTransaction {
    /// Ends the sessions that ever showed a removed factor, or a recovery code of somebody who had it; nil: any factor.
    /// The factor may have been removed because its phone was stolen. `account` has lost the factor already. If it has
    /// none left, the recovery codes are gone, too, and every session that showed anything ends.
    fileprivate func endSessions(
        thatShowed factor: SecondFactor?, of account: Account, origin: Origin, now: Timestamp
    ) throws {
        let removedID = account.user.secondFactors.isEmpty ? nil : factor?.factorID
        for id in try reading.sessionIDs(of: account.key) {
            guard let session = try get(Tables.sessions, SessionKey(id)), !session.secondFactor.isEmpty,
                removedID.map({ session.mayHaveShown($0) }) ?? true
            else { continue }
            _ = try endSession(id, of: account.key, .admin, origin: origin, now: now)
        }
    }

    fileprivate func endSessionsWithoutFactor(
        of key: UserKey, settings: TenantSettings, origin: Origin, now: Timestamp
    ) throws -> Int64 {
        var count: Int64 = 0
        for id in try reading.sessionIDs(of: key) {
            guard let session = try get(Tables.sessions, SessionKey(id)), session.secondFactor.isEmpty,
                session.refusedCause(settings: settings, now: now) == nil
            else { continue }
            if try endSession(id, of: key, .admin, origin: origin, now: now) { count += 1 }
        }
        return count
    }
}
