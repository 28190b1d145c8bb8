import Base
import Glibc
import Messages
import Synchronization
import Wire

/// An attack, which a hostile caller makes as fast as the server lets it.
protocol Attack: Sendable {
    /// The name in the report, and of the thread.
    var name: String { get }

    /// Runs until `isOver`, and notes the server's answers. After an error the attack begins again.
    func run(_ answers: Answers, until isOver: () -> Bool) throws
}

/// How often the server gave each answer to an attack. Any thread.
final class Answers: Sendable {
    /// What is noted when an attack did not get as far as the server, or the server closed its connection. An attack
    /// that got further has other answers as well.
    static let notConnected = "not connected"
    static let refusedOrClosed = "connection refused or closed"

    private let counts = Mutex<[String: Int]>([:])

    func note(_ answer: String) { counts.withLock { $0[answer, default: 0] += 1 } }

    /// The most frequent first.
    var all: [(answer: String, count: Int)] {
        counts.withLock { $0.sorted { ($1.value, $0.key) < ($0.value, $1.key) } }.map { ($0.key, $0.value) }
    }
}

/// An attack on a thread of its own.
///
/// The thread has the lowest priority, because a real attacker does not share the server's processors.
final class RunningAttack: Sendable {
    let name: String
    let answers = Answers()
    private let thread: OSThread

    init(_ attack: any Attack, until end: Instant) {
        name = attack.name
        let answers = answers
        thread = OSThread(name: attack.name) {
            _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19)
            while Instant.now < end {
                do {
                    try attack.run(answers) { Instant.now >= end }
                } catch {
                    answers.note(Answers.refusedOrClosed)
                    pause(microseconds: 10_000)
                }
            }
        }
    }

    func join() { thread.join() }
}

extension Connection {
    /// Makes the calls that `request` writes, `inFlight` at a time, until `isOver`; notes each answer.
    func flood(
        inFlight: Int, _ answers: Answers, until isOver: () -> Bool, request: (Int, UInt32, inout ByteBuffer) -> Void
    ) throws {
        try pipeline(count: .max, inFlight: inFlight, until: isOver, append: request) { _, result in
            switch result {
            case .ok: answers.note("OK")
            case .refused(let reason): answers.note(reason)
            }
        }
    }
}

/// A generator of numbers that nobody else uses, for new addresses and keys.
final class FreshNumbers: Sendable {
    private let next: Atomic<UInt64>

    init() { next = Atomic(UInt64(bitPattern: Clock.system.now().microseconds) << 8) }

    func take() -> UInt64 { next.add(1, ordering: .relaxed).newValue }
}
