import Base
import Glibc
import Messages
import Synchronization
import Wire

/// Token verifications at a steady rate on one connection: the other work of a server while it is measured.
final class Verifications: @unchecked Sendable {
    // Unchecked: the connection belongs to the thread that calls `run`; the rest is atomic or behind a lock.
    private let connection: Connection
    private let templates: [FrameTemplate]
    private let perSecond: Int
    private let inFlightMax: Int
    private let answered = Atomic<Int>(0)
    private let isStopping = Atomic<Bool>(false)
    private let refusal = Mutex<String?>(nil)

    init(_ target: Target, _ population: Population, perSecond: Int) throws {
        connection = try Connection(to: target.address, authorization: target.authorization)
        inFlightMax = max(1, Int(connection.server.streamsMax))
        templates = population.sessions.prefix(256).map { session in
            FrameTemplate(
                .verify,
                TokensVerifyIdTokenRequest(
                    tenantID: population.tenantID, idToken: Text(validating: session.idToken) ?? .empty))
        }
        self.perSecond = perSecond
    }

    var answeredCount: Int { answered.load(ordering: .relaxed) }

    /// The reason of the last answer that was no verification. The refusal of a token that was revoked is one.
    var failure: String? { refusal.withLock { $0 } }

    func stop() { isStopping.store(true, ordering: .relaxed) }

    /// Runs until `stop`. A server that is behind gets no more at once than it takes; later requests wait.
    func run() {
        guard perSecond > 0 else { return }
        let begin = Instant.now
        var sent = 0
        while !isStopping.load(ordering: .relaxed) {
            let due = Int(Double(Instant.now.nanoseconds(since: begin)) / 1e9 * Double(perSecond))
            while sent < due, sent - answeredCount < inFlightMax, let stream = connection.takeStream() {
                templates[sent % templates.count].append(stream: stream, to: &connection.output)
                sent += 1
            }
            while !connection.output.isEmpty {
                guard case .bytes = connection.send() else { break }
            }
            guard case .bytes(let count) = connection.receive(), count > 0 else {
                pause(microseconds: 200)
                continue
            }
            connection.takeFrames { header, payload in
                guard header.type == .response else { return }
                note(Answer(reading: payload))
                answered.add(1, ordering: .relaxed)
            }
        }
    }

    private func note(_ answer: Answer) {
        let reason: String
        switch answer {
        case .ok: return
        case .failure(let status): reason = Answer.reason(ofStatus: status)
        case .malformed: reason = "MALFORMED_ANSWER"
        }
        guard reason != Reason.tokenExpired.name else { return }
        refusal.withLock { $0 = reason }
    }
}

func pause(microseconds: UInt32) { usleep(microseconds) }
