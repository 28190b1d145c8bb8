import Base
import Identity
import Reactor
import Store

/// Calls the project's housekeeping once a minute, unless it still runs. Looks after its clock and its log in between.
final class Sweeper: @unchecked Sendable {
    // Unchecked: the variables are touched on the loop only.
    private let project: Project
    private let health: HealthStatus
    private let callerUse: CallerUse
    private let log: Log
    private let loop: EventLoop
    private var timer: Timer?
    private var turn = 0
    private let journalHealth: JournalHealth
    /// A sweep of very many records, or one that waits for a slow disk, takes longer than a minute.
    private let sweeping = SoleWork()
    private static let checkEvery = Duration.seconds(1)
    private static let turnsPerSweep = 60

    init(_ project: Project, health: HealthStatus, callerUse: CallerUse, log: Log, loop: EventLoop) {
        self.callerUse = callerUse
        self.project = project
        self.health = health
        self.log = log
        self.loop = loop
        self.journalHealth = JournalHealth(startedAt: .nowWithSleep, limits: project.limits.journal)
    }

    func start() {
        loop.run { [self] in
            timer = Timer(on: loop) { [weak self] in self?.fired() }
            timer?.arm(after: Self.checkEvery)
        }
    }

    func stop() {
        loop.run { [self] in
            timer?.cancel()
            timer = nil
        }
    }

    private func fired() {
        project.checkClock()
        project.backups.endStalled()
        if let status = project.store.journalStatus {
            health.set(
                isBehind: journalHealth.isBehind(
                    isConfirmed: status.isConfirmed, behindCount: status.behindCount, endSeenAt: status.endSeenAt,
                    now: .nowWithSleep))
        }
        health.note(isDiskSilent: project.store.isDiskSilent, log: log)
        health.writeDueLine(to: log)
        turn = (turn + 1) % Self.turnsPerSweep
        if turn == 0 {
            let (project, sweeping) = (project, sweeping)
            callerUse.noteOpen(in: project.callers.uses)
            Task {
                let isBegun = await sweeping.run { await project.sweep() }
                if !isBegun { await project.goOnSweeping() }
            }
        }
        timer?.arm(after: Self.checkEvery)
    }
}
