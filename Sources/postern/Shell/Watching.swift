import Base
import Messages
import PosternClient

/// A record of a log whose records are numbered.
protocol NumberedRecord: Record {
    /// Grows with each record.
    var sequence: Int64 { get }
}

extension Denial: NumberedRecord {}
extension AuditEvent: NumberedRecord {}

/// Names the record behind which a watch begins. -1 is the server's word for the beginning of the log.
let watchAfterFlag = Flag(
    "after", "SEQUENCE", "start after this one instead of now; -1: before the first one kept")

extension Session {
    /// Prints one of the records that come over time. Throws if standard output takes no more.
    func printNext(_ record: some Record) throws {
        output.printNext(record)
        try console.checkOutput()
    }

    /// Prints the records of a log as they come, those behind `sequence`, or with 0 those behind the newest one.
    /// `newest` asks for the sequence of that one; nil: there is none. `open` opens the stream after a record, and -1
    /// stands for "before the first record".
    func printRecords<Response: Message, Element: NumberedRecord>(
        after sequence: Int64, newest: (CallOptions) async throws -> Int64?,
        open: (_ after: Int64, CallOptions) async throws -> ServerStream<Response>,
        read: (Response) -> Element?
    ) async throws {
        var last = sequence
        // For the server 0 means "from now on", which would leave a gap when the stream is begun again.
        if last == 0 { last = try await newest(callOptions()) ?? -1 }
        var isBegun = false
        try await keepWatching(while: { isBegun }) { options in
            let stream = try await open(last, options)
            isBegun = true
            for try await message in stream {
                guard let record = read(message) else { continue }
                try printNext(record)
                last = record.sequence
            }
        }
    }

    /// Runs `watch`, and again whenever the server goes away meanwhile, as long as `canGoOn` says that nothing is
    /// missed. `watch` remembers what it has seen, and continues after it.
    func keepWatching(
        while canGoOn: () -> Bool, _ watch: (CallOptions) async throws -> Void
    ) async throws {
        var options = streamOptions
        while true {
            do {
                return try await watch(options)
            } catch let failure as Failure where failure.code == .unavailable && canGoOn() && !Task.isCancelled {
                say("\(failure.message) Connecting again.")
                options.waitsForConnection = true
                // The channel paces connecting; this paces a server that ends what it just took.
                try await Task.sleep(for: .milliseconds(200))
            }
        }
    }
}
