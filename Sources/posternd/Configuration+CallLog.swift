import Base
import Glibc
import Service

extension Configuration {
    /// The configured logs of calls. Opens the access log.
    func callLog(_ log: Log) throws -> CallLog.Configuration {
        var calls = CallLog.Configuration()
        calls.oneIn = Int(clamping: accessLogOneIn)
        calls.slowFrom = slowCallMillis > 0 ? .milliseconds(slowCallMillis) : nil
        let destination: LineSink.Destination
        switch accessLog {
        case "off": return calls
        case "stdout": destination = .descriptor(STDOUT_FILENO)
        case "stderr": destination = .descriptor(STDERR_FILENO)
        default: destination = .file(accessLog)
        }
        do {
            calls.sink = try LineSink(
                destination, byteCountMax: Limits().accessLogBufferMax, noteOfDropped: Self.noteOfDropped
            ) { error in
                if let error {
                    log.error("the access log cannot be written", ["error": .text("\(error)")])
                } else {
                    log.notice("the access log is written again", [:])
                }
            }
        } catch {
            throw ConfigurationError(description: "access_log: \(error)")
        }
        return calls
    }

    private static func noteOfDropped(_ count: Int) -> [UInt8] {
        var line = LogLine(time: Clock.system.now(), level: "warning", message: "calls without a line")
        line.append("count", .integer(Int64(count)))
        return line.finish()
    }
}
