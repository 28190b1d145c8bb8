import Glibc
import Synchronization

/// One JSON line per event on standard error: constant message, data as fields.
///
/// Lines never hold passwords, tokens or addresses in clear. They go through a bounded queue to one writer thread, so
/// that a blocked sink never blocks a caller. Lines that do not fit are counted and reported when the sink moves again.
public final class Log: Sendable {
    public enum Level: Int, Sendable, Comparable, CaseIterable {
        case debug, info, notice, warning, error

        public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
        public var name: String { "\(self)" }
    }

    public typealias Value = LogValue

    private struct Queue {
        var lines: [[UInt8]] = []
        var droppedCount = 0
        var isStopping = false
    }

    private let level: Level
    private let clock: Clock
    private let sink: (@Sendable ([UInt8]) -> Void)?
    private let queue = Mutex(Queue())
    private let wakeup = Semaphore()
    private let writerEnded = Semaphore()
    private let hasWriter: Mutex<Bool>
    private static let linesMax = 4_096
    /// How long `close` waits for the last lines to be read.
    private static let closeTimeout = Duration.seconds(1)

    /// With a `sink` (tests), lines go there on the caller's thread instead of to standard error.
    public init(level: Level = .info, clock: Clock = .system, sink: (@Sendable ([UInt8]) -> Void)? = nil) {
        self.level = level
        self.clock = clock
        self.sink = sink
        self.hasWriter = Mutex(sink == nil)
        if sink == nil { startWriter() }
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
        queue.withLock { $0.isStopping = true }
        wakeup.signal()
        let isFirst = hasWriter.withLock { hasWriter in
            defer { hasWriter = false }
            return hasWriter
        }
        guard isFirst else { return }
        _ = writerEnded.wait(for: Self.closeTimeout)
    }

    private func write(_ level: Level, _ message: StaticString, _ fields: KeyValuePairs<StaticString, Value>) {
        guard level >= self.level else { return }
        var line = LogLine(time: clock.now(), level: level.name, message: message.description)
        for (key, value) in fields { line.append(key.description, value) }
        let bytes = line.finish()
        if let sink {
            sink(bytes)
            return
        }
        let isFirst = queue.withLock { queue in
            guard queue.lines.count < Self.linesMax else {
                queue.droppedCount += 1
                return false
            }
            queue.lines.append(bytes)
            return queue.lines.count == 1
        }
        if isFirst { wakeup.signal() }
    }

    /// The thread is not joined: it may hang in a write for as long as nobody reads.
    private func startWriter() {
        do throws(ThreadError) {
            try OSThread.startDetached(name: "log") { [self] in
                drainUntilClosed()
                writerEnded.signal()
            }
        } catch {
            preconditionFailure("log: \(error)")
        }
    }

    private func drainUntilClosed() {
        while true {
            wakeup.wait()
            let (lines, droppedCount, isStopping) = queue.withLock { queue in
                defer {
                    queue.lines = []
                    queue.droppedCount = 0
                }
                return (queue.lines, queue.droppedCount, queue.isStopping)
            }
            for line in lines { Self.writeAll(line) }
            if droppedCount > 0 {
                var line = LogLine(time: clock.now(), level: "warning", message: "log lines dropped")
                line.append("count", .integer(Int64(droppedCount)))
                Self.writeAll(line.finish())
            }
            if isStopping { return }
        }
    }

    private static func writeAll(_ line: [UInt8]) {
        var offset = 0
        while offset < line.count {
            let written = line.withUnsafeBytes {
                Glibc.write(STDERR_FILENO, $0.baseAddress! + offset, line.count - offset)
            }
            if written < 0 && errno == EINTR { continue }
            if written <= 0 { return }
            offset += written
        }
    }
}
