public import Base
import Messages
import Store
import Synchronization

/// The clock that everything here uses: its checks, its log messages, and an operator's change of it.
extension Project {
    /// Compares the time with the machine's clock; called every second. A new finding is logged once.
    public func checkClock() {
        noteEngineClock()
        guard let notice = time.check() else { return }
        log(notice)
        if case .believed(let jump) = notice { Task { await record(believed: jump) } }
    }

    /// The earliest time that it can be now. Records that are left out because of their age are compared with it.
    public var earliest: Timestamp { resources.earliest }

    /// Logs once that this node's clock is too far from that of the cluster's engine, and once that it is right again.
    private func noteEngineClock() {
        guard let status = store.journalStatus else { return }
        let hasTold = hasToldOfEngineClock.exchange(status.isClockWrong, ordering: .relaxed)
        guard status.isClockWrong != hasTold else { return }
        guard status.isClockWrong else {
            return resources.log.notice("the machine's clock agrees with the engine's again; this node writes", [:])
        }
        resources.log.error(
            "the machine's clock is too far from the engine's; this node writes nothing until it is right",
            ["seconds_ahead": .integer(status.clock.difference.components.seconds)])
    }

    private func record(believed jump: Duration) async {
        do {
            try await store.write { [now = clock.now()] transaction in
                try transaction.appendEvent(
                    .clockJumpBelieved, tenantID: .empty, origin: .server,
                    detail: Text("\(jump.components.seconds) s ahead"), now: now)
            }
        } catch {
            resources.log.error("a jump of the clock was not recorded", ["error": .text("\(error)")])
        }
    }

    /// Logs the finding of a start or a check.
    public func log(_ notice: TimeKeeping.Notice) {
        let log = resources.log
        switch notice {
        case .jumpedAhead(let by):
            log.error(
                "the machine's clock jumped ahead and is not believed yet; nothing is deleted by its age meanwhile",
                ["seconds": .integer(by.components.seconds)])
        case .fellBehind(let by):
            log.error(
                """
                the machine's clock is behind the store's; the time goes on from the store's and nothing is deleted by \
                its age; if the machine's clock is right, start once with --accept-clock
                """,
                ["seconds": .integer(by.components.seconds)])
        case .believed(let jump):
            log.warning(
                "the machine's clock has stayed ahead and is believed now",
                ["seconds": .integer(jump.components.seconds)])
        case .followed(let step):
            log.warning(
                "the machine's clock was set and is followed; nothing is deleted by its age for ten minutes",
                ["seconds": .integer(step.components.seconds)])
        case .agreesAgain: log.notice("the machine's clock is right again", [:])
        }
    }

    /// Writes the effects of `--accept-clock`: the new mark, a note that no earlier proof counts again, and an event.
    func acceptClock() async throws {
        guard let former = resources.acceptedClockOver else { return }
        // A flag that was left in a unit file does nothing while the clock is right.
        let difference = clock.now() - former
        guard difference > TimeKeeping.slack || difference < .zero - TimeKeeping.slack else { return }
        try await store.write { [now = clock.now()] transaction in
            try transaction.setTimeMark(now)
            try transaction.lowerNewestOfBackup(to: now)
            if former > now { try transaction.spendProofs(former: former, now: now) }
            try transaction.appendEvent(
                .clockAccepted, tenantID: .empty, origin: .server,
                detail: Text("\((now - former).components.seconds) s from the store's mark"), now: now)
        }
    }
}
