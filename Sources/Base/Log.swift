import Glibc

/// One JSON line per event on standard error: constant message, data as fields.
///
/// Lines never hold passwords, tokens or addresses in clear. They go through a `LineSink`, so that a blocked reader
/// never blocks a caller. Lines that do not fit are counted and reported when the reader moves again.
public final class Log: Sendable {
    public enum Level: Int, Sendable, Comparable, CaseIterable {
        case debug, info, notice, warning, error

        public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
        public var name: String { "\(self)" }
    }

    public typealias Value = LogValue

    private enum Output: Sendable {
        case lines(LineSink)
        /// Called on the thread that logs.
        case function(@Sendable ([UInt8]) -> Void)
    }

    private let level: Level
    private let clock: Clock
    private let output: Output
    /// The bytes of the lines that may wait: thousands of lines.
    private static let byteCountMax = 4 * 1_024 * 1_024

    /// With a `sink` (tests), lines go there on the caller's thread instead of to standard error.
    public init(level: Level = .info, clock: Clock = .system, sink: (@Sendable ([UInt8]) -> Void)? = nil) {
        self.level = level
        self.clock = clock
        if let sink {
            self.output = .function(sink)
        } else {
            self.output = .lines(Self.lines(to: STDERR_FILENO, byteCountMax: Self.byteCountMax, clock))
        }
    }

    /// Writes to an open descriptor instead of standard error, and keeps fewer bytes (tests).
    init(to descriptor: Int32, byteCountMax: Int, level: Level = .info, clock: Clock = .system) {
        self.level = level
        self.clock = clock
        self.output = .lines(Self.lines(to: descriptor, byteCountMax: byteCountMax, clock))
    }

    /// A log that drops every line: for tests, and for libraries without a log of their own.
    public static let silent = Log(level: .error, sink: { _ in })

    public func debug(_ message: StaticString, _ fields: KeyValuePairs<StaticString, Value> = [:]) {
        write(.debug, message, fields)
    }
    public func info(_ message: StaticString, _ fields: KeyValuePairs<StaticString, Value> = [:]) {
        write(.info, message, fields)
    }
    public func notice(_ message: StaticString, _ fields: KeyValuePairs<StaticString, Value> = [:]) {
        write(.notice, message, fields)
    }
    public func warning(_ message: StaticString, _ fields: KeyValuePairs<StaticString, Value> = [:]) {
        write(.warning, message, fields)
    }
    public func error(_ message: StaticString, _ fields: KeyValuePairs<StaticString, Value> = [:]) {
        write(.error, message, fields)
    }

    /// Writes what is queued and stops the writer thread. The last call of a program.
    ///
    /// If standard error is a pipe that nobody reads, the last lines are given up after a second, because a server that
    /// was told to end must end.
    public func close() {
        if case .lines(let sink) = output { sink.close() }
    }

    private func write(_ level: Level, _ message: StaticString, _ fields: KeyValuePairs<StaticString, Value>) {
        guard level >= self.level else { return }
        var line = LogLine(time: clock.now(), level: level.name, message: message.description)
        for (key, value) in fields { line.append(key.description, value) }
        switch output {
        case .lines(let sink): sink.append(line.finish())
        case .function(let append): append(line.finish())
        }
    }

    private static func lines(to descriptor: Int32, byteCountMax: Int, _ clock: Clock) -> LineSink {
        do throws(FileError) {
            return try LineSink(
                .descriptor(descriptor), byteCountMax: byteCountMax, threadName: "log",
                noteOfDropped: { count in
                    var line = LogLine(time: clock.now(), level: Level.warning.name, message: "log lines dropped")
                    line.append("count", .integer(Int64(count)))
                    return line.finish()
                },
                // The log has no other place to report it to.
                onTrouble: { _ in })
        } catch {
            preconditionFailure("log: \(error)")
        }
    }
}
