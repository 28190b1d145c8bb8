import Base

/// How many more messages of a tenant may be on their way.
struct DeliveryRoom: Sendable, Equatable {
    var mails: Int
    var sms: Int
}

/// The places of the messages on their way. It is pure.
///
/// A tenant's mails and its SMS are judged apart, because they go to different servers. The servers of many tenants may
/// hang at once, those of one mail provider for example. Their messages wait for a thread for seconds, and hold a place
/// meanwhile. So all tenants whose last delivery was slow or put off have half of the places together.
struct DeliveryPlaces: Sendable {
    /// The messages of one kind of one tenant.
    private struct Line: Hashable {
        let tenant: Text
        let isSMS: Bool
    }

    /// While many servers hang, most of the messages wait for a thread, and give up soon: they take memory, and no
    /// thread.
    static let countMax = 64
    /// The places of the lines that are held up.
    static let heldUpMax = countMax / 2
    static let perLineMax = 2
    /// A delivery that took longer was slow.
    static let slow = Duration.seconds(2)
    /// For how long a line counts as held up after a delivery that was slow or put off.
    static let heldUpFor = Duration.minutes(1)
    private static let heldUpLinesMax = 4_096

    /// The messages on their way by tenant, and whether each is an SMS.
    private var taken: [Text: [Text: Bool]] = [:]
    private(set) var count = 0
    /// The lines that are held up, each until a time.
    private var heldUp: [Line: Instant] = [:]
    /// Lines whose last message found no thread in time. Nothing of theirs is tried before the next wake.
    private var resting: Set<Line> = []

    var freeCount: Int { Self.countMax - count }
    /// Whether less than a quarter of the places is free.
    var isCrowded: Bool { count > Self.countMax / 4 * 3 }

    func has(_ key: OutboxDueKey) -> Bool { taken[key.tenant]?[key.messageID] != nil }

    mutating func take(_ key: OutboxDueKey) {
        if taken[key.tenant, default: [:]].updateValue(key.isSMS, forKey: key.messageID) == nil { count += 1 }
    }

    mutating func release(_ key: OutboxDueKey) {
        guard taken[key.tenant]?.removeValue(forKey: key.messageID) != nil else { return }
        if taken[key.tenant]?.isEmpty == true { taken[key.tenant] = nil }
        count -= 1
    }

    mutating func endRests() { resting = [] }

    /// The room of a tenant: two messages of each kind, but one while less than a quarter of the places is free.
    /// `due`: messages that get a place next.
    func room(for tenant: Text, beside due: [OutboxDueKey] = [], now: Instant) -> DeliveryRoom {
        DeliveryRoom(
            mails: room(of: Line(tenant: tenant, isSMS: false), beside: due, now: now),
            sms: room(of: Line(tenant: tenant, isSMS: true), beside: due, now: now))
    }

    private func room(of line: Line, beside due: [OutboxDueKey], now: Instant) -> Int {
        guard !resting.contains(line) else { return 0 }
        let takenCount = taken[line.tenant]?.values.count { $0 == line.isSMS } ?? 0
        let room = (isCrowded ? 1 : Self.perLineMax) - takenCount
        guard room > 0, isHeldUp(line, now) else { return max(0, room) }
        return max(0, min(room, Self.heldUpMax - heldUpCount(beside: due, now)))
    }

    private func isHeldUp(_ line: Line, _ now: Instant) -> Bool { heldUp[line].map { $0 > now } ?? false }

    /// How many places the lines have that are held up.
    private func heldUpCount(beside due: [OutboxDueKey], _ now: Instant) -> Int {
        var count = due.count { isHeldUp(Line(tenant: $0.tenant, isSMS: $0.isSMS), now) }
        for (tenant, messages) in taken {
            for isSMS in messages.values where isHeldUp(Line(tenant: tenant, isSMS: isSMS), now) { count += 1 }
        }
        return count
    }

    /// Notes what became of an attempt. The message keeps its place until `release`. A quick outcome does not end the
    /// time for which its line is held up: it may be that of a decoy, for which no server is asked.
    mutating func ended(_ key: OutboxDueKey, _ outcome: DeliveryOutcome?, after duration: Duration, now: Instant) {
        let line = Line(tenant: key.tenant, isSMS: key.isSMS)
        var isPutOff = false
        if case .postponed = outcome { isPutOff = true }
        if isPutOff { resting.insert(line) }
        guard isPutOff || duration > Self.slow else { return }
        if heldUp.count >= Self.heldUpLinesMax { forget(now) }
        heldUp[line] = now.advanced(by: Self.heldUpFor)
    }

    /// Forgets the lines that are no longer held up; all of them if too many are left.
    private mutating func forget(_ now: Instant) {
        heldUp = heldUp.filter { $0.value > now }
        if heldUp.count >= Self.heldUpLinesMax { heldUp = [:] }
    }
}
