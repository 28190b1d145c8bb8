import Base
import JSON

/// A recorded load: the requests, and their times.
struct Trace: Sendable {
    struct Event: Equatable, Sendable {
        /// Nanoseconds after the first.
        var at: Int64
        var operation: Operation
        /// A seeded user's number; nil: any.
        var user: Int?
    }

    /// The requests, in the order of their times.
    private(set) var events: [Event]
    let name: String
    /// Calls of an access log that are not replayed, by method.
    private(set) var left: [String: Int] = [:]
    /// The log has a line for one call in this many.
    private(set) var oneIn = 1

    static let byteCountMax = 1 << 30
    static let eventsMax = 10_000_000
    static let lineByteCountMax = 65_536
    /// A day.
    static let secondsMax = 86_400.0

    static func load(_ path: String) throws -> Trace {
        try Trace(reading: TextFile.read(path, byteCountMax: byteCountMax), named: path)
    }

    /// A JSON object a line: `{"at_ms": 12.5, "do": "get", "user": 17}`, or a line of posternd's access log.
    init(reading bytes: [UInt8], named name: String) throws(BenchError) {
        self.name = name
        events = []
        for (index, line) in bytes.split(separator: UInt8(ascii: "\n")).enumerated() {
            let place = "\(name):\(index + 1)"
            guard line.count <= Self.lineByteCountMax, let json = try? JSONValue(parsing: [UInt8](line)),
                json.object != nil
            else { throw BenchError(.notReady, "\(place): no JSON object") }
            if json["message"]?.string == "call" { takeLogged(json) } else { try take(json, place) }
            guard events.count <= Self.eventsMax else {
                throw BenchError(.notReady, "\(name): more than \(Self.eventsMax) requests")
            }
        }
        events.sort { $0.at < $1.at }
        guard let first = events.first, let last = events.last else {
            throw BenchError(.notReady, "\(name): nothing to replay")
        }
        guard Double(last.at - first.at) / 1e9 <= Self.secondsMax else {
            throw BenchError(.notReady, "\(name): longer than a day")
        }
        for index in events.indices { events[index].at -= first.at }
    }

    private mutating func take(_ json: JSONValue, _ place: String) throws(BenchError) {
        let known = ["at_ms", "do", "user"]
        for member in json.object ?? [] where !known.contains(member.name.string) {
            throw BenchError(.notReady, "\(place): a request has no \"\(member.name)\"; it has at_ms, do and user")
        }
        guard let at = json["at_ms"]?.double, at >= 0, at <= Self.secondsMax * 1e3 else {
            throw BenchError(.notReady, "\(place): at_ms is a number of milliseconds, within a day")
        }
        guard let operation = json["do"]?.string.flatMap({ Operation(name: $0) }),
            Operation.inMixes.contains(operation), operation != .idp
        else { throw BenchError(.notReady, "\(place): do is an operation, as in --mix, but for idp") }
        var user: Int?
        if let given = json["user"] {
            guard let number = given.integer, (0..<1_000_000_000).contains(number) else {
                throw BenchError(.notReady, "\(place): user is a seeded user's number")
            }
            user = Int(number)
        }
        events.append(Event(at: Int64(at * 1e6), operation: operation, user: user))
    }

    /// Takes a call of the log. The call began before its line, by its duration. The log names no user.
    private mutating func takeLogged(_ json: JSONValue) {
        let method = json["method"]?.string ?? "_OTHER"
        let most: Int64 = 1 << 53
        guard let ended = json["time_micros"]?.integer, (0...most).contains(ended),
            let took = json["duration_micros"]?.integer, (0...most).contains(took),
            let operation = Operation.inMixes.first(where: { $0 != .idp && "\($0.service)/\($0.method)" == method })
        else { return left[method, default: 0] += 1 }
        oneIn = max(oneIn, Int(clamping: min(most, json["one_in"]?.integer ?? 1)))
        events.append(Event(at: (ended - took) * 1_000, operation: operation))
    }

    /// The trace in less time, or in more.
    func atSpeed(_ speed: Double) -> Trace {
        var changed = self
        for index in events.indices { changed.events[index].at = Int64(Double(events[index].at) / speed) }
        return changed
    }

    /// The part of the trace that one of several threads sends.
    func share(_ index: Int, of count: Int) -> Trace {
        var part = self
        part.events = stride(from: index, to: events.count, by: count).map { events[$0] }
        return part
    }

    var seconds: Double { Double(events.last?.at ?? 0) / 1e9 }

    /// The requests a second over time.
    var schedule: RateSchedule {
        let length = max(1, (seconds / Double(RateSchedule.segmentsMax)).rounded(.up))
        var counts = [Double](repeating: 0, count: Int(seconds / length) + 1)
        for event in events { counts[Int(Double(event.at) / 1e9 / length)] += 1 }
        return RateSchedule(
            segments: counts.map { RateSchedule.Segment(seconds: length, from: $0 / length, to: $0 / length) },
            description: "as recorded in \(name)", hasEnd: true)
    }

    /// How often each operation is asked for.
    var shares: [Mix.Share] {
        var counts: [Operation: Int] = [:]
        for event in events { counts[event.operation, default: 0] += 1 }
        return Operation.allCases.compactMap { operation in
            counts[operation].map { Mix.Share(operation: operation, weight: $0) }
        }
    }
}
