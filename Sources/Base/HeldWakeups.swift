/// Something whose thread sleeps until there is work for it.
public protocol Sleeper: AnyObject, Sendable {
    /// Wakes the thread if it sleeps though there is work for it. From any thread.
    func wakeIfNeeded()
}

/// Wake-ups that the calling thread puts off until it has handed over all that it has at the moment.
///
/// Whoever is woken for the first of three works may take the processor of the thread that hands over the other two,
/// sleep again after the first, and be woken twice more. What was handed over is in its queue meanwhile: any other
/// thread that adds to the queue wakes the sleeper at once. The calling thread's own: nothing here is shared.
public final class HeldWakeups {
    private static let ofThread = ThreadPointer()

    private var sleepers: [any Sleeper] = []

    public init() {}

    /// The calling thread's, if it puts its wake-ups off now.
    public static var current: HeldWakeups? {
        ofThread.value.map { Unmanaged<HeldWakeups>.fromOpaque($0).takeUnretainedValue() }
    }

    public func add(_ sleeper: some Sleeper) {
        // Mostly one and the same: a list that has it twice only asks twice.
        if sleepers.last !== sleeper { sleepers.append(sleeper) }
    }

    /// From now on the calling thread puts off its wake-ups, until `end()`.
    public func begin() { Self.ofThread.value = Unmanaged.passUnretained(self).toOpaque() }

    /// Wakes those that were put off so far.
    public func give() {
        for sleeper in sleepers { sleeper.wakeIfNeeded() }
        sleepers.removeAll(keepingCapacity: true)
    }

    /// For a thread that is about to sleep: perhaps somebody whom it has to wake is to wake it.
    static func giveBeforeSleep() { current?.give() }

    /// Wakes them, and puts off no more.
    public func end() {
        Self.ofThread.value = nil
        give()
    }
}
