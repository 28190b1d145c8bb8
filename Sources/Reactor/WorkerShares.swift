package import Base

/// The shares of the tenants in the workers of a pool whose works wait for servers that the tenants name. It is pure.
///
/// A server that hangs takes no processor time, so fairness by that time does not hold its tenant back. Five rules do:
///
/// - A tenant begins a work only while it has fewer workers than half of those that are free (a dynamic threshold:
///   Choudhury and Hahne, 1998). So its share shrinks as more tenants want workers, and a tenant that comes late still
///   finds one.
/// - The last quarter of the workers is for tenants that have no work under way. Servers that were quick and then hang
///   hold the workers that they find free, before their tenants count as slow: the first few tenants cannot take all.
/// - All slow tenants together have at most half of the workers. A tenant is slow while one of its works has run for
///   longer than `timeFree`, and afterwards in proportion to the time that its works took beyond that. If its last work
///   hung, it stays slow until one ends in time: a server that hangs may do so for days, and is tried now and then.
/// - All patient works together have at most half of the workers, and those of slow tenants half of these. Such a work
///   may take longer than the others, and nobody waits for it: a mail. So works for which somebody waits find a worker
///   as soon as one of their own ends, and mail servers that hang leave workers to the mails of other tenants.
/// - All patient works of tenants that are not proven have at most three quarters of the workers for patient works. A
///   tenant is proven once its last work of this kind did not hang. So mail servers that hang from the first mail on,
///   however many begin at once, leave workers to the mails of tenants whose servers answer.
///
/// Of the workers for slow tenants, of those for patient works and of those for tenants that are not proven, too, the
/// last quarter is for tenants that have no work of this kind under way. So a slow tenant whose servers answer again
/// finds a worker to show that.
///
/// A tenant's patient works and its other works are judged apart: they go to different servers.
///
/// A tenant also has at most `perTenant` workers, of which its patient works have half.
///
/// The server's own work (`WorkLine.server`) takes any worker that is free.
package struct WorkerShares: Sendable {
    /// The works of a tenant that are judged together.
    fileprivate struct Line: Hashable {
        let tenant: Text
        let isPatient: Bool
    }

    private struct Running {
        let id: ObjectIdentifier
        let line: Line
        let begun: Instant
    }

    private struct Slowness {
        /// The time until which the slow works count.
        var until: Instant
        /// Whether the last work took so long that it has consequences by itself.
        var hasHung: Bool
    }

    /// The time of each work that is never held against its tenant.
    static let timeFree = Duration.seconds(1)
    /// A tenant pays for each slow second by being slow this many seconds, and ten minutes at most.
    static let secondsPerSlowSecond = 20
    static let slowMax = Duration.minutes(10)
    /// A tenant may be slow for so much time without consequences: one answer that came a little late says nothing.
    static let slowFree = Duration.seconds(20)
    static let slowLinesMax = 4_096
    static let provenLinesMax = 4_096

    private let workers: Int
    private let perTenantMax: Int
    /// The workers that slow tenants may have, and also those that patient works may have.
    private let halfOfWorkers: Int
    /// The workers that patient works of slow tenants may have.
    private let quarterOfWorkers: Int
    /// The workers that patient works of tenants that are not proven may have.
    private let unprovenMax: Int
    private var running: [Running] = []
    private var slowness: [Line: Slowness] = [:]
    /// The patient lines whose last work did not hang, each with the time at which that work ended.
    private var proven: [Line: Instant] = [:]

    package var runningCount: Int { running.count }

    package init(workers: Int, perTenant perTenantMax: Int = .max) {
        self.workers = workers
        self.perTenantMax = perTenantMax
        self.halfOfWorkers = max(1, workers / 2)
        self.quarterOfWorkers = max(1, workers / 4)
        self.unprovenMax = halfOfWorkers - halfOfWorkers / 4
    }

    /// The workers of one kind that are free.
    fileprivate struct Room {
        let freeCount: Int
        /// The number of these that are only for tenants without a worker of this kind.
        let reserve: Int

        init(of count: Int, taken: Int) { (freeCount, reserve) = (count - taken, count / 4) }

        func admits(isFirst: Bool) -> Bool { freeCount > (isFirst ? 0 : reserve) }
    }

    /// Says which works may begin now.
    struct Admission {
        fileprivate let all: Room
        fileprivate let slow: Room
        fileprivate let patient: Room
        fileprivate let slowPatient: Room
        fileprivate let unprovenPatient: Room
        fileprivate let perTenantMax: Int
        fileprivate let runningCount: (Line) -> Int
        fileprivate let isSlow: (Line) -> Bool
        fileprivate let isProven: (Line) -> Bool

        /// `runningCount`: how many workers the tenant has already.
        func admits(_ tenant: Text, isPatient: Bool = false, runningCount: Int) -> Bool {
            if tenant == WorkLine.server { return true }
            let line = Line(tenant: tenant, isPatient: isPatient)
            guard runningCount < perTenantMax, 2 * runningCount < all.freeCount else { return false }
            let lineCount = self.runningCount(line)
            let isFirst = lineCount == 0
            guard all.admits(isFirst: isFirst) else { return false }
            if isPatient {
                guard isFirst || lineCount < perTenantMax / 2, patient.admits(isFirst: isFirst) else { return false }
                guard isProven(line) || unprovenPatient.admits(isFirst: isFirst) else { return false }
            }
            let hasRoomIfSlow =
                slow.admits(isFirst: isFirst) && (!isPatient || slowPatient.admits(isFirst: isFirst))
            return hasRoomIfSlow || !isSlow(line)
        }
    }

    func admission(now: Instant) -> Admission {
        let works = running
        let slowNow = Set(works.filter { Self.isOverdue($0.begun, now) }.map(\.line))
        let slowness = slowness
        let isSlow = { (line: Line) in
            guard line.tenant != WorkLine.server else { return false }
            if slowNow.contains(line) { return true }
            guard let known = slowness[line] else { return false }
            return known.hasHung || known.until > now.advanced(by: Self.slowFree)
        }
        let slow = works.filter { isSlow($0.line) }
        let proven = proven
        let isProven = { (line: Line) in proven[line] != nil }
        return Admission(
            all: Room(of: workers, taken: works.count), slow: Room(of: halfOfWorkers, taken: slow.count),
            patient: Room(of: halfOfWorkers, taken: works.count { $0.line.isPatient }),
            slowPatient: Room(of: quarterOfWorkers, taken: slow.count { $0.line.isPatient }),
            unprovenPatient: Room(
                of: unprovenMax, taken: works.count { $0.line.isPatient && !isProven($0.line) }),
            perTenantMax: perTenantMax, runningCount: { line in works.count { $0.line == line } }, isSlow: isSlow,
            isProven: isProven)
    }

    private static func isOverdue(_ begun: Instant, _ now: Instant) -> Bool { now > begun.advanced(by: timeFree) }

    /// `id`: of an object that lives until its work has ended.
    mutating func began(_ id: ObjectIdentifier, of tenant: Text, isPatient: Bool = false, now: Instant) {
        running.append(Running(id: id, line: Line(tenant: tenant, isPatient: isPatient), begun: now))
    }

    /// As `began`, for works without a queue. Returns false if the work may not begin now.
    package mutating func begin(_ id: ObjectIdentifier, of tenant: Text, now: Instant) -> Bool {
        let runningCount = running.count { $0.line.tenant == tenant }
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
        let (line, now) = (ended.line, ended.begun.advanced(by: .nanoseconds(nanoseconds)))
        let slow = min(.nanoseconds(nanoseconds) - Self.timeFree, Self.slowMax)
        guard slow > .zero else {
            prove(line, now: now)
            return endedInTime(line, now: now)
        }
        let added = slow * Self.secondsPerSlowSecond
        let until = max(slowness[line]?.until ?? now, now).advanced(by: added)
        let hasHung = added > Self.slowFree
        slowness[line] = Slowness(until: min(until, now.advanced(by: Self.slowMax)), hasHung: hasHung)
        if slowness.count > Self.slowLinesMax { forget(now: now) }
        if hasHung { proven[line] = nil } else { prove(line, now: now) }
    }

    /// Notes that a work did not hang. If there are too many proven tenants, forgets those whose last works are older
    /// than those of the other half.
    private mutating func prove(_ line: Line, now: Instant) {
        guard line.isPatient else { return }
        proven[line] = now
        guard proven.count > Self.provenLinesMax else { return }
        let middle = proven.values.sorted()[proven.count / 2]
        proven = proven.filter { $0.value > middle }
    }

    private mutating func endedInTime(_ line: Line, now: Instant) {
        guard let known = slowness[line] else { return }
        slowness[line] = known.until > now ? Slowness(until: known.until, hasHung: false) : nil
    }

    /// Forgets the tenants that are no longer slow and whose last work did not hang. If too many are left, forgets the
    /// half that stays slow for the shorter time.
    private mutating func forget(now: Instant) {
        slowness = slowness.filter { $0.value.hasHung || $0.value.until > now }
        guard slowness.count > Self.slowLinesMax else { return }
        let middle = slowness.values.map(\.until).sorted()[slowness.count / 2]
        slowness = slowness.filter { $0.value.until > middle }
    }
}
