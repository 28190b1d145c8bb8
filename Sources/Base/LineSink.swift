import Synchronization

/// Writes lines to a file or a pipe through a bounded buffer and a thread of its own, so that `append` never waits
/// for the disk. The access log and the server's `Log` are such sinks.
///
/// If the buffer is full, lines are dropped and counted, and their number is written as an extra line when there is
/// room again. The same applies to lines that could not be written.
public final class LineSink: Sendable {
    public typealias Destination = LineDestination

    private struct Queue {
        var bytes: [UInt8] = []
        var lineCount = 0
        var droppedCount = 0
        var reopens = false
        var isStopping = false

        mutating func take() -> Queue {
            let taken = self
            self = Queue()
            isStopping = taken.isStopping
            return taken
        }
    }

    /// Lines that were written, and lines that were lost.
    public let written = Counter()
    public let dropped = Counter()
    private let byteCountMax: Int
    private let queue = Mutex(Queue())
    private let wakeup = Semaphore()
    private let writerEnded = Semaphore()
    private let hasWriter = Mutex(true)
    /// How long `close` waits for the last lines to be taken.
    private static let closeTimeout = Duration.seconds(1)

    /// Opens the destination and starts the thread. `noteOfDropped` makes the line that says how many were lost.
    /// `onTrouble` is called on the sink's thread when writing or opening begins to fail, and with nil when it works
    /// again.
    public init(
        _ destination: Destination, byteCountMax: Int, threadName: String = "lines",
        noteOfDropped: @escaping @Sendable (Int) -> [UInt8], onTrouble: @escaping @Sendable (FileError?) -> Void
    ) throws(FileError) {
        self.byteCountMax = byteCountMax
        let output = try LineOutput(destination)
        let writer = LineWriter(output: output, noteOfDropped: noteOfDropped, onTrouble: onTrouble)
        // The thread is not joined: it may hang in a write for as long as nobody reads.
        do throws(ThreadError) {
            try OSThread.startDetached(name: threadName) { [self] in
                drainUntilClosed(writer)
                writerEnded.signal()
            }
        } catch {
            let path = if case .file(let path) = destination { path } else { "standard error" }
            throw FileError(path: path, call: "pthread_create", code: error.code)
        }
    }

    /// Adds a line, which ends with a newline. Any thread; never waits for the destination.
    public func append(_ line: [UInt8]) {
        let isFirst = queue.withLock { queue in
            guard queue.bytes.count + line.count <= byteCountMax else {
                queue.droppedCount += 1
                dropped.add()
                return false
            }
            queue.bytes += line
            queue.lineCount += 1
            return queue.lineCount == 1
        }
        if isFirst { wakeup.signal() }
    }

    /// Lines that the writer has not taken yet.
    public var waitingCount: Int { queue.withLock { $0.lineCount } }

    /// Opens the file again by its name, after it was moved away. If that fails, lines still go to the old file.
    public func reopen() {
        queue.withLock { $0.reopens = true }
        wakeup.signal()
    }

    /// Writes the buffered lines and ends the thread. It gives up after a second if nobody takes the lines.
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

    private func drainUntilClosed(_ writer: LineWriter) {
        while true {
            wakeup.wait()
            let batch = queue.withLock { $0.take() }
            if batch.reopens { writer.reopen() }
            let lost = writer.write(batch.bytes, droppedBehind: batch.droppedCount)
            dropped.add(UInt64(clamping: lost))
            written.add(UInt64(clamping: batch.lineCount - lost))
            if batch.isStopping { return }
        }
    }
}

/// The writing half of a `LineSink`.
// Unchecked: the sink's own thread alone touches it.
private final class LineWriter: @unchecked Sendable {
    private var output: LineOutput
    private let noteOfDropped: @Sendable (Int) -> [UInt8]
    private let onTrouble: @Sendable (FileError?) -> Void
    /// Lines that were lost and are not reported yet.
    private var unreportedCount = 0
    private var isWritingInTrouble = false
    private var isOpeningInTrouble = false

    init(
        output: consuming LineOutput, noteOfDropped: @escaping @Sendable (Int) -> [UInt8],
        onTrouble: @escaping @Sendable (FileError?) -> Void
    ) {
        self.output = output
        self.noteOfDropped = noteOfDropped
        self.onTrouble = onTrouble
    }

    func reopen() {
        do throws(FileError) {
            try output.reopen()
            note(nil, in: \.isOpeningInTrouble)
        } catch {
            note(error, in: \.isOpeningInTrouble)
        }
    }

    /// Returns how many of the lines were lost.
    func write(_ lines: [UInt8], droppedBehind droppedCount: Int) -> Int {
        var lostCount = 0
        if !lines.isEmpty {
            let result = output.write(lines)
            lostCount = result.lostCount
            note(result.error, in: \.isWritingInTrouble)
        }
        unreportedCount += lostCount + droppedCount
        if unreportedCount > 0, lostCount == 0, output.write(noteOfDropped(unreportedCount)).error == nil {
            unreportedCount = 0
        }
        return lostCount
    }

    /// Tells that a kind of trouble begins, or that none is left: a file that was opened again may be on a disk that is
    /// still full, and lines that are written may still go to the file of before.
    private func note(_ error: FileError?, in trouble: ReferenceWritableKeyPath<LineWriter, Bool>) {
        guard self[keyPath: trouble] != (error != nil) else { return }
        self[keyPath: trouble] = error != nil
        if error != nil || !(isWritingInTrouble || isOpeningInTrouble) { onTrouble(error) }
    }
}
