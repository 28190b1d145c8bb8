import Base
import Identity
import Reactor
import Store

/// Calls the project's housekeeping once a minute, and looks after its clock and its log in between.
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
    private static let checkEvery = Duration.seconds(1)
    private static let turnsPerSweep = 60

    init(_ project: Project, health: HealthStatus, callerUse: CallerUse, log: Log, loop: EventLoop) {
        self.callerUse = callerUse
        self.project = project
        self.health = health
        self.log = log
        self.loop = loop
        self.journalHealth = JournalHealth(startedAt: .now, limits: project.limits.journal)
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
                    now: .now))
        }
        health.writeDueLine(to: log)
        turn = (turn + 1) % Self.turnsPerSweep
        if turn == 0 {
            let project = project
            callerUse.noteOpen(in: project.callers.uses)
            Task { await project.sweep() }
        }
        timer?.arm(after: Self.checkEvery)
    }
}
