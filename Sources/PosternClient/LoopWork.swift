import Base

/// What a loop does for one of those that share it. Made, run and dropped on the loop's thread.
protocol LoopWork: AnyObject {
    /// The loop is going to give a turn.
    var isTouched: Bool { get set }
    /// When `checkTimes` has something to do.
    var wakeUp: Instant { get }

    /// Takes what other threads asked for. False: it is over, everything is settled, and there are no more turns.
    func takeCommands(now: Instant) -> Bool
    /// A socket that the poller watches under `key` is ready.
    func becameReady(key: UInt64, events: Int16, now: Instant)
    func checkTimes(now: Instant)
    /// Does all that there is to do, after commands, ready sockets or deadlines.
    func takeTurn(now: Instant)
}

/// What other threads put into a loop's inbox when it holds something new.
protocol LoopMember: AnyObject, Sendable {
    /// Called once, on the loop's thread, when the member comes for the first time.
    func makeWork(with poller: Poller) -> any LoopWork
}
