import Base

/// A loop's work for one of the members that share it. Made, run and dropped on the loop's thread.
protocol LoopWork: AnyObject {
    /// True if the loop is going to call `takeTurn`.
    var isTouched: Bool { get set }
    /// The next time at which `checkTimes` has something to do.
    var wakeUp: Instant { get }

    /// Takes the commands of other threads. False: the work is over, everything is settled, and no more turns come.
    func takeCommands(now: Instant) -> Bool
    /// A socket that the poller watches under `key` is ready.
    func becameReady(key: UInt64, events: Int16, now: Instant)
    func checkTimes(now: Instant)
    /// Does all that there is to do, after commands, ready sockets or deadlines.
    func takeTurn(now: Instant)
}

/// A member of a loop. Other threads put it into the loop's inbox when it holds something new.
protocol LoopMember: AnyObject, Sendable {
    /// Called once, on the loop's thread, when the member comes for the first time.
    func makeWork(with poller: Poller) -> any LoopWork
}
