import Base
import Messages

/// A service that starts anew twice a second: it connects, shows its key and asks one question. The measured time
/// begins when the start was due.
final class Newcomer: @unchecked Sendable {
    // Unchecked: the main thread reads it only after the thread that runs it was joined.

    private(set) var outcome = Outcome()
    private let address: ServerAddress
    private let authorization: Text
    private let tenantID: Text
    private static let interval = Duration.milliseconds(500)

    init(address: ServerAddress, authorization: Text, tenantID: Text) {
        self.address = address
        self.authorization = authorization
        self.tenantID = tenantID
    }

    func run(from begin: Instant, until end: Instant) {
        var due = begin
        while due < end {
            while Instant.now < due { pause(microseconds: 1_000) }
            do {
                try ask()
                outcome.latency.record(UInt64(max(0, Instant.now.nanoseconds(since: due))))
            } catch {
                outcome.errors["\(error)", default: 0] += 1
            }
            due = due.advanced(by: Self.interval)
        }
    }

    private func ask() throws {
        let connection = try Connection(to: address, authorization: authorization)
        let request = UsersGetRequest(tenantID: tenantID, uid: UserName.uid(0))
        try connection.call(service: "postern.v1.Users", method: "Get", request) { result in
            if case .refused(let reason) = result { throw BenchError(.failed, reason) }
        }
    }
}
