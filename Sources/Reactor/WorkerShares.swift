import Base

/// The shares of the tenants in the workers of a pool whose works wait for servers that the tenants name. It is pure.
///
/// A server that hangs takes no processor time, so fairness by that time does not hold its tenant back. Two rules do:
///
/// - A tenant begins a work only while it has fewer workers than half of those that are free (a dynamic threshold:
///   Choudhury and Hahne, 1998). So its share shrinks as more tenants want workers, and a tenant that comes late still
///   finds one.
/// - All slow tenants together have at most half of the workers. A tenant is slow while one of its works has run for
///   longer than `timeFree`, and afterwards in proportion to the time that its works took beyond that.
///
/// The server's own work (`Work.ownTenant`) takes any worker that is free.
struct WorkerShares: Sendable {
    /// The time of each work that is never held against its tenant.
    static let timeFree = Duration.seconds(1)
    /// A tenant pays for each slow second by being slow this many seconds, and ten minutes at most.
    static let secondsPerSlowSecond = 20
    static let slowMax = Duration.minutes(10)
    /// A tenant may be slow for so much time without consequences: one answer that came a little late says nothing.
    static let slowFree = Duration.seconds(20)
    static let slowTenantsMax = 4_096

    private let workers: Int
    private let slowWorkersMax: Int
    private var running: [(work: Work, begun: Instant)] = []
    /// The time until which each tenant's slow works count.
    private var slowUntil: [Text: Instant] = [:]

    init(workers: Int) {
        self.workers = workers
        self.slowWorkersMax = max(1, workers / 2)
    }

    /// Says which works may begin now.
    struct Admission {
        fileprivate let freeCount: Int
        fileprivate let hasRoomForSlow: Bool
        fileprivate let isSlow: (Text) -> Bool

        /// `runningCount`: how many workers the tenant has already.
        func admits(_ tenant: Text, runningCount: Int) -> Bool {
            if tenant == Work.ownTenant { return true }
            return 2 * runningCount < freeCount && (hasRoomForSlow || !isSlow(tenant))
        }
    }

    func admission(now: Instant) -> Admission {
        let slowNow = Set(running.filter { Self.isOverdue($0.begun, now) }.map(\.work.tenant))
        let slowUntil = slowUntil
        let isSlow = { (tenant: Text) in
            guard tenant != Work.ownTenant else { return false }
            let isStillPaying = slowUntil[tenant].map { $0 > now.advanced(by: Self.slowFree) } ?? false
            return isStillPaying || slowNow.contains(tenant)
        }
        let slowCount = running.count { isSlow($0.work.tenant) }
        return Admission(
            freeCount: workers - running.count, hasRoomForSlow: slowCount < slowWorkersMax, isSlow: isSlow)
    }

    private static func isOverdue(_ begun: Instant, _ now: Instant) -> Bool { now > begun.advanced(by: timeFree) }

    mutating func began(_ work: Work, now: Instant) { running.append((work, now)) }

    /// `nanoseconds`: how long the work had its worker.
    mutating func ended(_ work: Work, nanoseconds: Int64) {
        guard let index = running.firstIndex(where: { $0.work === work }) else { return }
        let now = running.remove(at: index).begun.advanced(by: .nanoseconds(nanoseconds))
        let slow = min(.nanoseconds(nanoseconds) - Self.timeFree, Self.slowMax)
        guard slow > .zero else { return }
        let added = slow * Self.secondsPerSlowSecond
        let until = max(slowUntil[work.tenant] ?? now, now).advanced(by: added)
        slowUntil[work.tenant] = min(until, now.advanced(by: Self.slowMax))
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
