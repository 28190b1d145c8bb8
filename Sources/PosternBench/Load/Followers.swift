import Base
import Messages
import Synchronization
import Wire

/// Many streams of revocations, each on its own connection; one thread reads them and notes when a revocation came.
final class Followers: @unchecked Sendable {
    // Unchecked: the connections and the poll belong to the thread that calls `run`; the rest is behind locks.
    private let connections: [Connection]
    private let poll: EventPoll
    private let rounds = Mutex<[[Instant]]>([])
    private let isStopping = Atomic<Bool>(false)
    private let failure = Mutex<String?>(nil)
    private static let waitMax = Duration.seconds(20)

    /// Opens the streams and waits for each one's snapshot.
    init(_ target: Target, tenantID: Text, count: Int) throws {
        var connections: [Connection] = []
        poll = try EventPoll()
        let request = TokensWatchRevocationsRequest(tenantID: tenantID, heartbeatSeconds: 300)
        for index in 0..<count {
            let connection = try Connection(to: target.address, authorization: target.authorization)
            try connection.follow(service: "postern.v1.Tokens", method: "WatchRevocations", request) {
                try TokensWatchRevocationsResponse(decoding: $0).continues
            }
            try poll.add(connection.descriptor, number: index)
            connections.append(connection)
        }
        self.connections = connections
    }

    func stop() { isStopping.store(true, ordering: .relaxed) }

    /// Reads until `stop`.
    func run() {
        var news = [Int](repeating: 0, count: connections.count)
        do {
            // Messages that came together with the snapshot's end have been read: the poll does not report them.
            for index in connections.indices { take(connections[index], &news[index]) }
            while !isStopping.load(ordering: .relaxed) {
                for event in 0..<(try poll.wait(milliseconds: 20)) {
                    let index = poll.number(at: event)
                    try read(connections[index], &news[index])
                }
            }
        } catch {
            failure.withLock { $0 = "\(error)" }
        }
    }

    private func read(_ connection: Connection, _ newsCount: inout Int) throws {
        switch connection.receive() {
        case .bytes(0), .failed: throw BenchError(.failed, "a verifier's connection was lost")
        case .wouldBlock: return
        case .bytes: break
        }
        take(connection, &newsCount)
    }

    /// Takes the whole messages that have been read.
    private func take(_ connection: Connection, _ newsCount: inout Int) {
        let now = Instant.now
        var seen = newsCount
        connection.takeFrames { header, payload in
            guard header.type == .data, let message = try? TokensWatchRevocationsResponse(decoding: payload) else {
                return
            }
            seen += message.revocations.count
        }
        for round in newsCount..<seen { note(round, now) }
        newsCount = seen
    }

    private func note(_ round: Int, _ now: Instant) {
        rounds.withLock { rounds in
            while rounds.count <= round { rounds.append([]) }
            rounds[round].append(now)
        }
    }

    /// The times at which the followers were told of this revocation, once all were told.
    func arrivals(round: Int) throws -> [Instant] {
        let deadline = Instant.now.advanced(by: Self.waitMax)
        while true {
            if let failure = failure.withLock({ $0 }) { throw BenchError(.failed, failure) }
            let arrivals = rounds.withLock { round < $0.count ? $0[round] : [] }
            if arrivals.count == connections.count { return arrivals }
            guard Instant.now < deadline else {
                throw BenchError(
                    .failed, "\(connections.count - arrivals.count) verifiers were not told of a revocation")
            }
            pause(microseconds: 500)
        }
    }
}
