import Base

/// One thread's work: it hands commands, ready sockets and passed deadlines to the channels that they are for.
///
/// Made, run and dropped on that thread.
final class ChannelLoop {
    private let inbox: LoopInbox
    private let poller: Poller
    private var works: [ObjectIdentifier: any LoopWork] = [:]
    /// The channels for which something happened since they last had their turn.
    private var touched: [any LoopWork] = []
    /// A time at or before the next work of any channel.
    private var wakeUp = Instant.distantFuture
    private var members: [any LoopMember] = []

    init(_ inbox: LoopInbox, _ poller: Poller) { (self.inbox, self.poller) = (inbox, poller) }

    /// Returns when the loop is to end and every channel is closed.
    func run() {
        while true {
            let isEnding = inbox.take(into: &members)
            let now = Instant.now
            for member in members { takeCommands(of: member, now: now) }
            members.removeAll(keepingCapacity: true)
            for work in touched { giveTurn(to: work, now: now) }
            touched.removeAll(keepingCapacity: true)
            if isEnding, works.isEmpty, !inbox.hasMembers { return }
            wait()
        }
    }

    private func takeCommands(of member: any LoopMember, now: Instant) {
        let work = work(of: member)
        if work.takeCommands(now: now) { touch(work) } else { works[ObjectIdentifier(member)] = nil }
    }

    /// The member's work. It is made when the channel is first used: until then a channel costs nothing here.
    private func work(of member: any LoopMember) -> any LoopWork {
        if let work = works[ObjectIdentifier(member)] { return work }
        let work = member.makeWork(with: poller)
        works[ObjectIdentifier(member)] = work
        return work
    }

    private func touch(_ work: any LoopWork) {
        if work.isTouched { return }
        work.isTouched = true
        touched.append(work)
    }

    private func giveTurn(to work: any LoopWork, now: Instant) {
        work.isTouched = false
        work.takeTurn(now: now)
        wakeUp = min(wakeUp, work.wakeUp)
    }

    /// Sleeps until a command comes, a socket is ready, or a deadline passes.
    private func wait() {
        // While commands keep coming, the loop reads answers without sleeping.
        let mustSleep = inbox.prepareToSleep()
        poller.wait(milliseconds: mustSleep ? milliseconds(until: wakeUp) : 0) { work, key, events in
            guard let work else { return inbox.drainSignal() }
            work.becameReady(key: key, events: events, now: .now)
            touch(work)
        }
        if mustSleep { inbox.wokeUp() }
        let now = Instant.now
        if wakeUp <= now { checkTimes(now: now) }
    }

    private func checkTimes(now: Instant) {
        wakeUp = .distantFuture
        for work in works.values {
            if work.wakeUp <= now {
                work.checkTimes(now: now)
                touch(work)
            } else {
                wakeUp = min(wakeUp, work.wakeUp)
            }
        }
    }

    /// The time until `instant`, rounded up: waking up too early would mean to look again at once. -1: for ever.
    private func milliseconds(until instant: Instant) -> Int32 {
        if instant == .distantFuture { return -1 }
        let nanoseconds = max(0, instant.nanoseconds(since: .now))
        return Int32(clamping: (nanoseconds + 999_999) / 1_000_000)
    }
}
