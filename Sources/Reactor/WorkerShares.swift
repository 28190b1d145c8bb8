package import Base

/// The shares of the tenants in the workers of a pool whose works wait for servers that the tenants name. It is pure.
///
/// A server that hangs takes no processor time, so fairness by that time does not hold its tenant back. Three rules do:
///
/// - A tenant begins a work only while it has fewer workers than half of those that are free (a dynamic threshold:
///   Choudhury and Hahne, 1998). So its share shrinks as more tenants want workers, and a tenant that comes late still
///   finds one.
/// - All slow tenants together have at most half of the workers. A tenant is slow while one of its works has run for
///   longer than `timeFree`, and afterwards in proportion to the time that its works took beyond that.
/// - All patient works together have at most half of the workers. Such a work may take longer than the others, and
///   nobody waits for it: a mail. So works for which somebody waits find a worker as soon as one of their own ends.
///
/// The server's own work (`Work.ownTenant`) takes any worker that is free.
package struct WorkerShares: Sendable {
    private struct Running {
        let id: ObjectIdentifier
        let tenant: Text
        let isPatient: Bool
        let begun: Instant
    }

    /// The time of each work that is never held against its tenant.
    static let timeFree = Duration.seconds(1)
    /// A tenant pays for each slow second by being slow this many seconds, and ten minutes at most.
    static let secondsPerSlowSecond = 20
    static let slowMax = Duration.minutes(10)
    /// A tenant may be slow for so much time without consequences: one answer that came a little late says nothing.
    static let slowFree = Duration.seconds(20)
    static let slowTenantsMax = 4_096

    private let workers: Int
    /// The workers that slow tenants may have, and also those that patient works may have.
    private let halfOfWorkers: Int
    private var running: [Running] = []
    /// The time until which each tenant's slow works count.
    private var slowUntil: [Text: Instant] = [:]

    package var runningCount: Int { running.count }

    package init(workers: Int) {
        self.workers = workers
        self.halfOfWorkers = max(1, workers / 2)
    }

    /// Says which works may begin now.
    struct Admission {
        fileprivate let freeCount: Int
        fileprivate let hasRoomForSlow: Bool
        fileprivate let hasRoomForPatient: Bool
        fileprivate let isSlow: (Text) -> Bool

        /// `runningCount`: how many workers the tenant has already.
        func admits(_ tenant: Text, isPatient: Bool = false, runningCount: Int) -> Bool {
            if tenant == Work.ownTenant { return true }
            if isPatient && !hasRoomForPatient { return false }
            return 2 * runningCount < freeCount && (hasRoomForSlow || !isSlow(tenant))
        }
    }

    func admission(now: Instant) -> Admission {
        let slowNow = Set(running.filter { Self.isOverdue($0.begun, now) }.map(\.tenant))
        let slowUntil = slowUntil
        let isSlow = { (tenant: Text) in
            guard tenant != Work.ownTenant else { return false }
            let isStillPaying = slowUntil[tenant].map { $0 > now.advanced(by: Self.slowFree) } ?? false
            return isStillPaying || slowNow.contains(tenant)
        }
        let (slowCount, patientCount) = (running.count { isSlow($0.tenant) }, running.count { $0.isPatient })
        return Admission(
            freeCount: workers - running.count, hasRoomForSlow: slowCount < halfOfWorkers,
            hasRoomForPatient: patientCount < halfOfWorkers, isSlow: isSlow)
    }

    private static func isOverdue(_ begun: Instant, _ now: Instant) -> Bool { now > begun.advanced(by: timeFree) }

    /// `id`: of an object that lives until its work has ended.
    mutating func began(_ id: ObjectIdentifier, of tenant: Text, isPatient: Bool = false, now: Instant) {
        running.append(Running(id: id, tenant: tenant, isPatient: isPatient, begun: now))
    }

    /// As `began`, for works without a queue. Returns false if the work may not begin now.
    package mutating func begin(_ id: ObjectIdentifier, of tenant: Text, now: Instant) -> Bool {
        let runningCount = running.count { $0.tenant == tenant }
        guard running.count < workers, admission(now: now).admits(tenant, runningCount: runningCount) else {
            return false
        }
        began(id, of: tenant, now: now)
        return true
    }

    /// `nanoseconds`: how long the work had its worker.
    package mutating func ended(_ id: ObjectIdentifier, nanoseconds: Int64) {
        guard let index = running.firstIndex(where: { $0.id == id }) else { return }
        let ended = running.remove(at: index)
        let (tenant, now) = (ended.tenant, ended.begun.advanced(by: .nanoseconds(nanoseconds)))
        let slow = min(.nanoseconds(nanoseconds) - Self.timeFree, Self.slowMax)
        guard slow > .zero else { return }
        let added = slow * Self.secondsPerSlowSecond
        let until = max(slowUntil[tenant] ?? now, now).advanced(by: added)
        slowUntil[tenant] = min(until, now.advanced(by: Self.slowMax))
        if slowUntil.count > Self.slowTenantsMax { forget(now: now) }
    }

    /// Forgets the tenants that have paid, and if all have not, the half that has least to pay.
    private mutating func forget(now: Instant) {
        slowUntil = slowUntil.filter { $0.value > now }
        guard slowUntil.count > Self.slowTenantsMax else { return }
        let middle = slowUntil.values.sorted()[slowUntil.count / 2]
        slowUntil = slowUntil.filter { $0.value > middle }
    }
}
